//! Twelve cases with a known answer each: six leaks, growth, fragmentation, two healthy programs, a cut file, and a file
//! whose names give orders. `cases/cases.json` has for each case the question, the answer, the files, and tool calls with
//! the facts that their answers must contain. A harness for a model needs only the question and the answer.
//!
//! The runner plays the tool calls without a model. With `MEMORY_CASES=FOLDER` it keeps the files in this folder, and
//! prints calls, bytes and seconds, compared with the texts of the commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::Server;

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

fn text(of: &Value) -> &str {
    of.as_str().unwrap_or_else(|| panic!("{of} is no text"))
}

/// Compiles the programs of the cases, with debug information.
fn compile(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/mcp/cases/program.rs");
    let program = folder.join("memory_cases");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--edition", "2021", "-g", "-C", "opt-level=1", "--crate-name", "memory_cases", "-o"])
        .args([&program, &source])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Writes a file of a case.
fn write(file: &Value, folder: &Path, program: &Path) {
    let path = folder.join(text(&file["as"]));
    if let Some(arguments) = file["record"].as_array() {
        let mut line = vec!["--record", path.to_str().unwrap(), "--", program.to_str().unwrap()];
        line.extend(arguments.iter().map(text));
        let output = crate::run::run(folder, &line);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let mut contents = match (file["report"].as_object(), file["dump"].as_array()) {
        (Some(report), _) => {
            let one = |(path, amount): (&String, &Value)| {
                json!({
                    "process": "Main Process (pid 1)", "path": path, "kind": 1, "units": 0, "amount": amount,
                    "description": "",
                })
                .to_string()
            };
            crate::document(&report.iter().map(one).collect::<Vec<_>>().join(","))
        }
        (_, Some(names)) => {
            let (mut blocks, mut traces, mut frames) = (Vec::new(), Map::new(), Map::new());
            for (index, name) in names.iter().enumerate() {
                blocks.push(json!({ "req": 1000 - index, "alloc": format!("T{index}") }));
                traces.insert(format!("T{index}"), json!([format!("F{index}")]));
                frames.insert(format!("F{index}"), json!(format!("#00: {} (src/main.rs:1)", text(name))));
            }
            json!({
                "version": 5, "invocation": { "dmdEnvVar": null, "mode": "live" }, "blockList": blocks,
                "traceTable": traces, "frameTable": frames,
            })
            .to_string()
        }
        _ => panic!("{file} has no contents"),
    };
    if let Some(share) = file["cut"].as_u64() {
        contents.truncate(contents.len() * share as usize / 100);
    }
    fs::write(path, contents).unwrap();
}

/// The calls of a case, and what they took.
#[derive(Default)]
struct PlayedCalls {
    calls: usize,
    bytes: usize,
    time: Duration,
}

/// Plays a call, and checks its facts.
fn play(server: &mut Server, call: &Value, handles: &mut Map<String, Value>, played: &mut PlayedCalls) {
    let mut arguments = call["arguments"].clone();
    for value in arguments.as_object_mut().unwrap().values_mut() {
        if let Some(handle) = value.as_str().and_then(|text| handles.get(text.strip_prefix('$')?)) {
            *value = handle.clone();
        }
    }
    let (tool, start) = (text(&call["tool"]), Instant::now());
    played.calls += 1;
    if call.get("fails").is_some() {
        let advice = server.fail(tool, arguments);
        played.time += start.elapsed();
        played.bytes += advice.len();
        list(call, "fails").iter().for_each(|part| assert!(advice.contains(text(part)), "{call}: {advice}"));
        return;
    }
    let (answer, shown) = server.call_both(tool, arguments);
    played.time += start.elapsed();
    let whole = answer.to_string();
    played.bytes += whole.len() + shown.len();
    if let Some(name) = call["save"].as_str() {
        handles.insert(name.to_owned(), answer["handle"].clone());
    }
    let rows: Vec<&Value> = list(&answer, "rows")
        .iter()
        .chain(list(&answer, "tables").iter().flat_map(|table| list(table, "rows")))
        .collect();
    for expected in list(call, "rows") {
        let matches =
            |row: &&&Value| expected.as_object().unwrap().iter().all(|(field, value)| row[field] == *value);
        assert!(rows.iter().any(|row| matches(&row)), "{call}: no row is {expected}: {answer:#}");
    }
    for part in list(call, "contains") {
        assert!(
            whole.contains(text(part)) && shown.contains(text(part)),
            "{call}: {part} is missing: {shown}"
        );
    }
    for part in list(call, "lacks") {
        assert!(!whole.contains(text(part)) && !shown.contains(text(part)), "{call}: {part}: {shown}");
    }
}

#[test]
fn the_tools_give_the_facts_of_twelve_cases() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/mcp/cases/cases.json");
    let cases: Vec<Value> = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(cases.len(), 12);
    let temporary = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("MEMORY_CASES").map(PathBuf::from);
    let folder = kept.clone().unwrap_or_else(|| temporary.path().to_owned());
    fs::create_dir_all(&folder).unwrap();
    let program = compile(&folder);
    for case in &cases {
        list(case, "files").iter().for_each(|file| write(file, &folder, &program));
        let mut server = Server::with(&["--root", folder.to_str().unwrap()]);
        let (mut handles, mut played) = (Map::new(), PlayedCalls::default());
        list(case, "calls").iter().for_each(|call| play(&mut server, call, &mut handles, &mut played));
        server.end();
        // The same facts are in the texts of the commands.
        let mut commands = PlayedCalls::default();
        for command in list(case, "commands") {
            let start = Instant::now();
            let output = Command::new(env!("CARGO_BIN_EXE_about-memory"))
                .args(command.as_array().unwrap().iter().map(text))
                .current_dir(&folder)
                .output()
                .unwrap();
            commands.time += start.elapsed();
            commands.calls += 1;
            commands.bytes += output.stdout.len() + output.stderr.len();
            let shown = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let facts = list(case, "facts");
            assert!(facts.iter().all(|fact| shown.contains(text(fact))), "{command}: {facts:?}: {shown}");
        }
        if kept.is_some() {
            let row = |played: &PlayedCalls| {
                format!("{} | {} | {:.2}", played.calls, played.bytes, played.time.as_secs_f64())
            };
            println!("| {} | {} | {} |", text(&case["case"]), row(&commands), row(&played));
        }
    }
}
