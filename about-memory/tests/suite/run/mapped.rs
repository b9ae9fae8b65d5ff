//! Mappings in recordings of real programs: `history` and `leaks`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{compile, run};

/// Keeps 8 MiB, maps and unmaps 1 MiB ten times, and moves 2 MiB to 4 MiB.
const SOURCE: &str = "#define _GNU_SOURCE\n#include <sys/mman.h>\n#include <unistd.h>\n\
    static void *map(size_t bytes) {\n\
    return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }\n\
    __attribute__((noinline)) static void *cache(void) { return map(8 << 20); }\n\
    __attribute__((noinline)) static void scratch(void) { munmap(map(1 << 20), 1 << 20); }\n\
    __attribute__((noinline)) static void *grown(void) {\n\
    return mremap(map(2 << 20), 2 << 20, 4 << 20, MREMAP_MAYMOVE); }\n\
    int main(void) { void *a = cache(); for (int i = 0; i < 10; i++) scratch();\n\
    void *b = grown(); usleep(300000); return a == b; }\n";

fn json(folder: &Path, command: &str) -> Value {
    let mut about = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    let output = about.args([command, "r.dmdrec", "--json"]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn mappings_of_a_program_are_recorded() {
    const MIB: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "maps", SOURCE, &["-O1", "-g"]);
    assert!(run(folder.path(), &["--record", "r.dmdrec", "--", "./maps"]).status.success());

    let mapped = &json(folder.path(), "history")["mapped"];
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
    assert_eq!((number(mapped, "mappings"), number(mapped, "atEnd")), (13, 12 * MIB));
    let sites = mapped["sites"].as_array().unwrap();
    let site = |name: &str| sites.iter().find(|site| site["name"] == name).expect(name);
    let figures = |name: &str| ["mappings", "highest", "atEnd"].map(|key| number(site(name), key));
    // The compiler has inlined `map`, but not its callers.
    assert_eq!(figures("map"), [12, 10 * MIB, 8 * MIB]);
    assert_eq!(figures("grown"), [1, 4 * MIB, 4 * MIB]);

    let leaks = json(folder.path(), "leaks");
    let leaks = leaks["mappings"].as_array().unwrap();
    let of = |name: &str| {
        let has = |row: &&Value| {
            row["mappedAt"].as_array().unwrap().iter().any(|frame| frame.as_str().unwrap().starts_with(name))
        };
        leaks.iter().find(has).map(|row| number(row, "bytes"))
    };
    assert_eq!([of("cache"), of("scratch"), of("grown")], [Some(8 * MIB), None, Some(4 * MIB)], "{leaks:?}");
}
