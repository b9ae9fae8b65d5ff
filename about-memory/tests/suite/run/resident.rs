//! `dmd --resident` and `diff --resident`: blocks that are touched in part.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{compile, run};

const MIB: u64 = 1 << 20;

/// Allocates 64 MiB and writes to the first bytes: as many MiB as its argument says.
const SOURCE: &str = "#include <stdlib.h>\n#include <string.h>\nstatic char *kept;\n\
                      int main(int count, char **words) {\n\
                      kept = malloc(64 << 20); memset(kept, 1, (size_t)atoi(words[1]) << 20);\n\
                      return count != 2; }\n";

fn stdout(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn resident_bytes_of_blocks_are_shown_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "touches", SOURCE, &["-O0", "-g"]);
    for touched in ["3", "35"] {
        let output = run(folder.path(), &["-o", &format!("{touched}.json"), "--", "./touches", touched]);
        assert!(output.status.success());
    }

    let text = stdout(folder.path(), &["dmd", "3.json", "--resident"]);
    assert!(text.contains("64.00 MiB in 1 block, 3.00 MiB touched"), "{text}");
    let plain = stdout(folder.path(), &["dmd", "3.json"]);
    assert!(!plain.contains("touched"), "{plain}");

    let json: Value =
        serde_json::from_str(&stdout(folder.path(), &["dmd", "3.json", "--resident", "--json"])).unwrap();
    let untouched = json["total"]["untouched"].as_u64().unwrap();
    assert!((60 * MIB..=61 * MIB).contains(&untouched), "{untouched}");

    let text = stdout(folder.path(), &["diff", "3.json", "35.json", "--resident"]);
    let row = text.lines().find(|line| line.ends_with("live blocks")).expect(&text);
    assert!(row.contains("+32.0"), "{row}");
    // The blocks are the same; only their pages differ.
    let site = text.lines().find(|line| line.contains(" main ")).expect(&text);
    assert!(site.trim_start().starts_with("0 B      32.00 MiB     -32.00 MiB "), "{text}");
    let same = stdout(folder.path(), &["diff", "3.json", "35.json"]);
    assert!(!same.contains("main"), "{same}");
}
