//! Stacks with the names of merged functions, and stacks that really contradict an owner.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::recordings::stdout;
use crate::run::run;

#[test]
fn a_merged_function_is_no_contradiction_and_needs_proof() {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/typed/tests/victims/merged.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compile = Command::new(rustc);
    compile.args(["--edition=2024", "-Copt-level=3", "-Ccodegen-units=1", "-Cdebuginfo=2"]).arg(source);
    assert!(compile.current_dir(folder.path()).status().unwrap().success());
    let dump = folder.path().join("scan.json");
    let dump = dump.to_str().unwrap();
    let output = run(folder.path(), &["--mode", "scan", "-o", dump, "--", "./merged"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let found: Value = serde_json::from_str(&stdout(&["types", dump, "--json"])).unwrap();
    let blocks = |name: &str| {
        let rows = found["types"].as_array().unwrap();
        rows.iter().find(|row| row["type"] == name).map(|row| row["blocks"].as_u64().unwrap())
    };
    // The owner's type is right, whatever type the stack names.
    for (name, expected) in [
        ("merged::Metre", 30),
        ("merged::Foot", 40),
        ("merged::Red", 1),
        ("merged::Blue", 1),
        ("[merged::Pair]", 1),
        ("[merged::Quad]", 1),
        ("[merged::Coin]", 1),
    ] {
        assert_eq!(blocks(name), Some(expected), "{name}: {found:#}");
    }
    let pair = |stack: &str, owner: &str, pointers: u64| json!({"stack": stack, "owner": owner, "pointers": pointers});
    // The compiler kept one function for `Metre` and `Foot`. Its callers are functions for the type of the owner.
    let (metre, foot) = ("merged::Metre", "merged::Foot");
    let either = [json!([pair(metre, foot, 40)]), json!([pair(foot, metre, 30)])];
    assert!(either.contains(&found["merged"]), "{found:#}");
    assert_eq!(found["sameLayout"], found["merged"][0]["pointers"]);
    // The disagreements: pairs of types with different alignments or forms, and stacks whose callers name no type.
    let mut disagreements = found["disagreements"].as_array().unwrap().clone();
    // The pointer's type and a calling function have only an allocator in common. This does not prove that functions
    // were merged.
    let of_vector = |one: &Value| one["owner"].as_str().unwrap().contains("Vec<u8");
    let at = disagreements.iter().position(of_vector).unwrap_or_else(|| panic!("{found:#}"));
    let of_vector = disagreements.remove(at);
    assert!([metre, foot].contains(&of_vector["stack"].as_str().unwrap()), "{found:#}");
    assert_eq!(of_vector["pointers"], 1);
    disagreements.sort_by_key(|one| one["owner"].as_str().unwrap().to_owned());
    let (red, blue) = ("merged::Red", "merged::Blue");
    assert_eq!(
        disagreements[..2],
        [pair("merged::Pair", "[merged::Coin]", 1), pair("[merged::Pair]", "[merged::Quad]", 1)]
    );
    assert!([pair(red, blue, 1), pair(blue, red, 1)].contains(&disagreements[2]), "{found:#}");
    assert_eq!((disagreements.len(), &found["disagree"]), (3, &json!(4)));

    let text = stdout(&["types", dump]);
    assert!(text.contains("  ... and 1 more; see --json\n"), "{text}");
    assert_eq!(found["ownersDisagree"], 0);
    let without = found["withoutLayout"].as_u64().unwrap();
    assert!(without == 0 || text.contains(&format!("\nWithout a layout: {without} block")), "{text}");
    let count = &found["sameLayout"];
    let line = format!("{count} more pointers contradict a stack because the compiler merged functions");
    assert!(text.contains(&line), "{text}");

    // The page has a table of these pairs, with their pointers and a link to the blocks.
    let table = served(dump).into_iter().find(|table| table["name"] == "disagreement").unwrap();
    assert_eq!((&table["title"], &table["counts"]), (&json!("Disagreements"), &json!("pointers")));
    let row = |pair: &Value, why: &str| {
        let (stack, owner) = (pair["stack"].as_str().unwrap(), pair["owner"].as_str().unwrap());
        let text = format!("{owner}, and the stack names {stack}{why}");
        json!({"bytes": 0, "blocks": pair["pointers"], "text": text, "of_type": owner})
    };
    let mut expected: Vec<_> =
        found["disagreements"].as_array().unwrap().iter().map(|pair| row(pair, "")).collect();
    expected.push(row(&found["merged"][0], ": the compiler merged functions"));
    let mut rows = table["rows"].as_array().unwrap().clone();
    [&mut rows, &mut expected].iter_mut().for_each(|rows| rows.sort_by_key(Value::to_string));
    assert_eq!(rows, expected);
}

/// Returns the tables of a dump that a page shows.
fn served(dump: &str) -> Vec<Value> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["serve", dump, "--no-open", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    let (origin, token) = line["url"].as_str().unwrap().split_once("/#token=").unwrap();
    let host = origin.strip_prefix("http://").unwrap();
    let get = || {
        let mut stream = TcpStream::connect(host).unwrap();
        let head =
            format!("GET /api/types/1 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    };
    // The server reads the dump on another thread.
    let answer = (0..1000).find_map(|_| {
        sleep(Duration::from_millis(20));
        get()
    });
    program.kill().unwrap();
    program.wait().unwrap();
    let answer = answer.expect("the dump is read");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let start = body.find('{').unwrap();
    let tables: Value = serde_json::from_str(&body[start..=body.rfind('}').unwrap()]).unwrap();
    tables["tables"].as_array().unwrap().clone()
}
