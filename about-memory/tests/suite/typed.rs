//! `about-memory types`, `waste`, `why` and `tasks` of a program whose source documents its memory.

#[cfg(target_os = "linux")]
mod cores;
#[cfg(target_os = "linux")]
mod small;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::json_output::assert_described;
use crate::recordings::{about_memory, fails, stdout};

/// Returns the path of a program of the crate typed-heap.
pub(crate) fn program(name: &str) -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_about-memory")).parent().unwrap();
    if std::env::var_os("PROGRAMS_ARE_BUILT").is_none() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "-p", "typed-heap", "--example", name]);
        assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    }
    profile.join("examples").join(name)
}

fn victim() -> PathBuf {
    program("typed_heap_victim")
}

/// Starts a program that listens and that DMD records, and waits for its first line.
#[cfg(target_os = "linux")]
fn listening(program: &Path, arguments: &[&Path], sockets: &Path) -> Child {
    let mut child = Command::new(program)
        .args(arguments)
        .env("DMD", "--stacks=full --quiet")
        .envs([("ABOUT_MEMORY", "listen".as_ref()), ("XDG_RUNTIME_DIR", sockets.as_os_str())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

/// Returns the ids of the child processes that a process has not waited for yet.
#[cfg(target_os = "linux")]
pub(crate) fn children(pid: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()).collect()
}

#[cfg(target_os = "linux")]
fn wait_for_no_children(pid: u32) {
    for _ in 0..1000 {
        if children(pid).is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("left: {}", children(pid));
}

/// Makes a dump of the victim in this mode. Returns its path.
fn dump(folder: &Path, mode: &str) -> String {
    dump_of(&victim(), folder, mode)
}

fn dump_of(program: &Path, folder: &Path, mode: &str) -> String {
    let path = folder.join(format!("{mode}.json"));
    let options = format!("--mode={mode} --stacks=full --quiet");
    let mut command = Command::new(program);
    command.arg(&path).env("DMD", options).stdin(Stdio::null()).stdout(Stdio::null());
    assert!(command.status().unwrap().success());
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_dump_has_types_waste_and_holders() {
    let folder = tempfile::tempdir().unwrap();
    let dump = dump(folder.path(), "scan");

    let text = stdout(&["types", &dump, "--limit", "2"]);
    let mut lines = text.lines();
    assert!(lines.next().unwrap().ends_with("blocks; 100.00% has a type"), "{text}");
    assert!(lines.nth(1).unwrap().ends_with("   1 block  table (u32, u64)"), "{text}");
    assert!(lines.next().unwrap().ends_with("  50 blocks  typed_heap_victim::Node"), "{text}");
    assert!(lines.next().unwrap().ends_with("more; see --limit"), "{text}");
    let json: Value = serde_json::from_str(&stdout(&["types", &dump, "--json"])).unwrap();
    assert_described("heap-types", &json);
    let cut: Value = serde_json::from_str(&stdout(&["types", &dump, "--limit", "2", "--json"])).unwrap();
    assert_described("heap-types", &cut);
    let shown: u64 = cut["types"].as_array().unwrap().iter().map(|row| row["bytes"].as_u64().unwrap()).sum();
    assert_eq!(shown + cut["rest"]["bytes"].as_u64().unwrap(), json["bytes"].as_u64().unwrap());
    assert_eq!(json["wrongSizes"], 0);
    let types = json["types"].as_array().unwrap();
    assert!(types.iter().any(|row| row["type"] == "[typed_heap_victim::User]" && row["blocks"] == 1));
    let sum: u64 = types.iter().map(|row| row["bytes"].as_u64().unwrap()).sum();
    assert_eq!(json["bytes"], sum);

    let text = stdout(&["types", &dump, "--by", "field", "--limit", "2"]);
    let mut lines = text.lines();
    assert!(
        lines.next().unwrap().ends_with("the memory that each field keeps alive, directly or indirectly"),
        "{text}"
    );
    assert!(lines.nth(1).unwrap().ends_with("100.00%   7 blocks  held from outside of the heap"), "{text}");
    // A list of 50 nodes. The first of the 49 nodes that other nodes hold keeps all of them alive.
    let list = "  49 blocks  typed_heap_victim::Node.next.Some";
    assert!(lines.next().unwrap().ends_with(list), "{text}");
    let fields: Value = serde_json::from_str(&stdout(&["types", &dump, "--by", "field", "--json"])).unwrap();
    assert_described("heap-fields", &fields);
    assert_eq!(fields["bytes"], json["bytes"]);
    let session = fields["fields"].as_array().unwrap().iter().find(|row| row["field"] == "[].session");
    let session = session.unwrap();
    assert_eq!((&session["type"], &session["blocks"]), (&"[typed_heap_victim::User]".into(), &1.into()));
    assert!(session["retainedBytes"].as_u64() > session["bytes"].as_u64(), "{session}");

    let snapshot = folder.path().join("typed.fxsnapshot");
    let snapshot = snapshot.to_str().unwrap();
    stdout(&["snapshot", "save", "--typed", &dump, snapshot]);
    let tree = stdout(&["snapshot", "tree", snapshot, "--breakdown", "type"]);
    assert!(tree.contains(" typed_heap_victim::Node\n"), "{tree}");
    let fields = stdout(&["snapshot", "dominators", snapshot, "--by-field"]);
    assert!(fields.contains(" typed_heap_victim::Node.next.Some\n"), "{fields}");
    let by_stack = stdout(&["export", snapshot, "--format", "folded"]);
    assert!(by_stack.contains("typed_heap_victim::main;"), "{by_stack}");

    let text = stdout(&["waste", &dump]);
    assert!(text.contains("waiting: [u16]: capacity beyond length of 128 B, 4% full\n"), "{text}");
    let json: Value = serde_json::from_str(&stdout(&["waste", &dump, "--json"])).unwrap();
    assert_described("heap-waste", &json);
    let row = |name| json["types"].as_array().unwrap().iter().find(|row| row["type"] == name).unwrap();
    let table = row("table (u32, u64)");
    assert_eq!(
        (&table["unusedBytes"], &table["places"], &table["fullPlaces"]),
        (&448.into(), &128.into(), &100.into())
    );
    let shapes = row("typed_heap_victim::Shape");
    assert_eq!((&shapes["values"], &shapes["unusedBytes"]), (&12.into(), &520.into()));
    let line = "typed_heap_victim::Shape: variants smaller than the largest, 12 values of 864 B\n";
    assert!(text.contains(line), "{text}");

    // The test of typed-heap reads the running program, where the last bytes of strings are known.
    let text = stdout(&["waste", &dump, "--duplicates"]);
    assert!(text.starts_with("0 B in 0 blocks are copies of the contents of another block\n"), "{text}");
    assert!(text.contains("of strings and bytes cannot be compared"), "{text}");
    let json: Value = serde_json::from_str(&stdout(&["waste", &dump, "--duplicates", "--json"])).unwrap();
    assert_described("heap-duplicates", &json);
    assert!(
        json["unknownBlocks"].as_u64() >= Some(4) && json["duplicates"] == Value::Array(vec![]),
        "{json}"
    );

    let text = stdout(&["why", &dump, "typed_heap_victim::Copies"]);
    assert!(
        text.contains("Held by\n  24 B  100.00%  1 block  [Box<dyn typed_heap_victim::Run>; 2]\n"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&stdout(&["why", &dump, "[u16]", "--json"])).unwrap();
    assert_described("heap-why", &json);
    let chain: Vec<_> = json["chain"].as_array().unwrap().iter().map(|link| &link["name"]).collect();
    assert_eq!(
        chain,
        [
            "held from outside of the heap",
            "[typed_heap_victim::User].session",
            "ArcInner<typed_heap_victim::Session>.waiting"
        ]
    );
    // An address inside the block finds the block.
    let address = json["largest"].as_str().unwrap();
    let inside = format!("0x{:x}", u64::from_str_radix(address, 16).unwrap() + 8);
    let other: Value = serde_json::from_str(&stdout(&["why", &dump, &inside, "--json"])).unwrap();
    assert_eq!((&other["largest"], &other["chain"]), (&json["largest"], &json["chain"]));
}

#[test]
fn tasks_are_at_their_awaits() {
    let folder = tempfile::tempdir().unwrap();
    let dump = dump_of(&program("typed_heap_tasks"), folder.path(), "scan");
    let source = include_str!("../../../heap-graph/typed/tests/victims/tasks.rs");
    let line = |word: &str| 1 + source.lines().position(|line| line.ends_with(word)).unwrap();
    let text = stdout(&["tasks", &dump, "--verbose"]);
    assert!(text.starts_with("43 tasks keep "), "{text}");
    let place = |word| format!("tests/victims/tasks.rs:{}", line(word));
    let chain = format!(
        "typed_heap_tasks::outer at {} -> typed_heap_tasks::serve at {} -> Pending<()>",
        place("// FOURTH"),
        place("// THIRD")
    );
    let row = text.lines().find(|row| row.ends_with(&chain)).unwrap_or_else(|| panic!("{chain}: {text}"));
    assert!(row.contains("   5 tasks of "), "{row}");
    assert!(text.contains("  typed_heap_tasks::serve, not started\n"), "{text}");
    assert!(stdout(&["tasks", &dump, "--limit", "2"]).ends_with("  ... and 4 more; see --limit\n"));

    let json: Value = serde_json::from_str(&stdout(&["tasks", &dump, "--json"])).unwrap();
    assert_described("heap-tasks", &json);
    let rows = json["rows"].as_array().unwrap();
    let receives = |row: &&Value| row["awaits"][1]["future"] == "typed_heap_tasks::{impl#0}::receive";
    let row = rows.iter().find(receives).unwrap();
    assert_eq!((&row["tasks"], &row["waitsFor"]), (&10.into(), &"Pending<()>".into()));
    assert_eq!(
        (&row["awaits"][1]["line"], &row["awaits"][1]["state"]),
        (&line("// FIRST").into(), &"Suspend0".into())
    );
    let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((json["tasks"].as_u64(), json["bytes"].as_u64()), (Some(sum("tasks")), Some(sum("bytes"))));

    let text = stdout(&["tasks", &self::dump(folder.path(), "scan")]);
    assert!(text.starts_with("0 tasks keep 0 B of ") && text.lines().count() == 1, "{text}");
}

#[test]
fn tasks_have_the_branches_of_join_and_select() {
    let folder = tempfile::tempdir().unwrap();
    let dump = dump_of(&program("typed_heap_branches"), folder.path(), "scan");
    let source = include_str!("../../../heap-graph/typed/tests/victims/branches.rs");
    let place = |word: &str| {
        let line = 1 + source.lines().position(|line| line.ends_with(&format!("// {word}"))).unwrap();
        format!("tests/victims/branches.rs:{line}")
    };
    let text = stdout(&["tasks", &dump, "--verbose"]);
    let receive = format!("typed_heap_branches::receive at {} -> Pending<()>", place("RECEIVE"));
    let wait = format!("typed_heap_branches::wait at {} -> Pending<()>", place("WAIT"));
    let joins = text.lines().find(|line| line.contains("typed_heap_branches::joins")).unwrap();
    let line = 1 + source.lines().position(|line| line.starts_with("async fn joins(")).unwrap();
    let start = "typed_heap_branches::joins of tests/victims/branches.rs";
    let start = format!("{start}:{line} at tokio-");
    assert!(joins.contains(&start), "{joins}");
    assert!(joins.ends_with(&format!(" -> ({receive} | {wait})")), "{joins}");
    let all = text.lines().find(|line| line.contains("typed_heap_branches::all")).unwrap();
    assert!(all.ends_with(&format!("::JoinAll<typed_heap_branches::receive> -> (10 {receive})")), "{all}");

    let json: Value = serde_json::from_str(&stdout(&["tasks", &dump, "--json"])).unwrap();
    let of = |row: &&Value| row["awaits"][0]["future"] == "typed_heap_branches::selects";
    let selects = json["rows"].as_array().unwrap().iter().find(of).unwrap();
    let branches = selects["branches"].as_array().unwrap();
    let never = |branch: &Value| branch["waitsFor"] == "typed_heap_branches::Never" && branch["count"] == 4;
    assert!(branches.len() == 3 && branches.iter().any(never), "{branches:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_stopped_process_is_read_without_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("unused.json");
    let child = &mut listening(&victim(), &[&dump], folder.path());
    let pid = child.id().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-STOP");
    thread::sleep(Duration::from_millis(200));
    let json: Value = serde_json::from_str(&stdout(&["types", &pid, "--json"])).unwrap();
    let types = json["types"].as_array().unwrap();
    assert!(types.iter().any(|row| row["type"] == "typed_heap_victim::Node" && row["blocks"] == 50));
    let text = stdout(&["why", &pid, "typed_heap_victim::Copies"]);
    assert!(text.contains("  static typed_heap_victim::STORE.jobs\n"), "{text}");
    signal("-CONT");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_has_no_types_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let scan = dump(folder.path(), "scan");
    let message = fails(&["why", &scan, "Copie"], 1);
    assert!(
        message.contains("no block has the type Copie; similar ones: typed_heap_victim::Copies"),
        "{message}"
    );
    let message = fails(&["why", &scan, "[…]"], 1);
    assert!(message.contains("[…] is short for ") && message.contains("; write one of them: ["), "{message}");
    // Screens shorten names.
    let whole = stdout(&["why", &scan, "typed_heap_victim::Copies"]);
    let short = stdout(&["why", &scan, "Copies"]);
    assert_eq!(short.lines().skip(1).collect::<Vec<_>>(), whole.lines().skip(1).collect::<Vec<_>>());
    let message = fails(&["why", &scan, "0x10"], 1);
    assert!(message.contains("no block has the address 0x10"), "{message}");
    fails(&["why", &scan, "0xuser"], 2);
    let message = fails(&["types", &scan, "--program", "/dev/null"], 1);
    assert!(message.contains("/dev/null: not a program"), "{message}");
    // A path in a dump may name a file that never ends.
    if cfg!(target_os = "linux") {
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // The file has size 0, but more bytes than can be read.
        let addresses = "/proc/self/pagemap";
        for endless in ["/dev/zero", addresses, pipe.to_str().unwrap()] {
            let named = fs::read_to_string(&scan).unwrap().replace(victim().to_str().unwrap(), endless);
            let other = folder.path().join("other.json");
            fs::write(&other, named).unwrap();
            let message = fails(&["types", other.to_str().unwrap()], 1);
            let why = if endless == addresses { "" } else { "not a regular file" };
            assert!(message.contains(&format!("{endless}: not a program: {why}")), "{message}");
        }
        // A file with a hole of 8 GB is mapped instead of copied.
        let sparse = folder.path().join("sparse");
        fs::copy(victim(), &sparse).unwrap();
        fs::OpenOptions::new().write(true).open(&sparse).unwrap().set_len(8 << 30).unwrap();
        let text = stdout(&["types", &scan, "--program", sparse.to_str().unwrap()]);
        assert!(text.contains("  50 blocks  typed_heap_victim::Node\n"), "{text}");
        let most = (2 * fs::metadata(&scan).unwrap().len()).to_string();
        let message = fails(&["types", &scan, "--max-bytes", &most], 1);
        assert!(
            message.contains(&format!("more than {most}; raise the limit with --max-bytes")),
            "{message}"
        );
    }
    let message = fails(&["types", &scan, "--program", env!("CARGO_BIN_EXE_about-memory")], 1);
    assert!(message.contains("is not the build that ran"), "{message}");
    let message = fails(&["types", env!("CARGO_BIN_EXE_about-memory")], 1);
    assert!(message.contains("not a core file: a program or a library"), "{message}");
    let message = fails(&["waste", &scan, "--core", &scan], 1);
    assert!(message.contains("not a core file"), "{message}");
    let message = fails(&["snapshot", "save", "1", "x.fxsnapshot", "--core", &scan], 2);
    assert!(message.contains("--core and --program need --typed"), "{message}");
    let message = fails(&["types", &dump(folder.path(), "live")], 1);
    assert!(message.contains("its mode is live; types need the contents of blocks"), "{message}");

    // Without debug information, the stacks still name types.
    let stripped = folder.path().join("stripped");
    let of_strip = Command::new("strip").arg(victim()).arg("-o").arg(&stripped).status().unwrap();
    assert!(of_strip.success() && fs::metadata(&stripped).unwrap().len() > 0);
    let output = about_memory(&["types", &scan, "--program", stripped.to_str().unwrap()]);
    assert!(output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("add `debug = 2` to its profile in Cargo.toml"), "{message}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("typed_heap_victim::Node"));
}

/// A running process is read through a copy of it. The program cannot write the contents to a file: the folder for
/// temporary files does not exist.
#[test]
#[cfg(target_os = "linux")]
fn a_running_process_is_read_without_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = folder.path().join("run");
    fs::create_dir(&sockets).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        command.args(arguments).env("XDG_RUNTIME_DIR", &sockets).env("TMPDIR", folder.path().join("missing"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let mut victim = listening(&victim(), &[&folder.path().join("dump.json")], &sockets);
    let pid = victim.id().to_string();

    let text = run(&["types", &pid]);
    assert!(text.contains("  50 blocks  typed_heap_victim::Node\n"), "{text}");
    let text = run(&["why", &pid, "typed_heap_victim::Copies"]);
    assert!(text.contains("  static typed_heap_victim::STORE.jobs\n"), "{text}");
    let mut written = run(&["types", &pid]) + &text;
    let text = run(&["waste", &pid, "--duplicates"]);
    assert!(text.starts_with("60 B in 3 blocks are copies of the contents of another block\n"), "{text}");
    written += &text;
    let snapshot = folder.path().join("typed.fxsnapshot");
    run(&["snapshot", "save", "--typed", &pid, snapshot.to_str().unwrap(), "--timeout", "30"]);
    let tree = run(&["snapshot", "tree", snapshot.to_str().unwrap(), "--breakdown", "type"]);
    assert!(tree.contains(" typed_heap_victim::Node\n"), "{tree}");

    // The snapshot contains names, but no contents of a string, in either encoding.
    let mut saved = fs::read(&snapshot).unwrap();
    if saved.starts_with(b"\x1f\x8b") {
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(&saved[..]).read_to_end(&mut unpacked).unwrap();
        saved = unpacked;
    }
    let has = |text: &str| {
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        [text.as_bytes(), &wide].iter().any(|text| saved.windows(text.len()).any(|part| part == *text))
    };
    assert!(has("typed_heap_victim::Node") && written.contains("typed_heap_victim::Node"));
    for contents in ["somebody@", "example.org", "user 0", "user 1", "user 2", "user 3"] {
        assert!(!has(contents) && !written.contains(contents), "{contents}: {written}");
    }

    wait_for_no_children(victim.id());
    drop(victim.stdin.take());
    assert!(victim.wait().unwrap().success());
}

/// A waiting thread and a running thread hold the blocks on their stacks. Neither of these threads exists in the copy.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn threads_of_a_running_process_hold_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump.json");
    let mut victim = listening(&program("typed_heap_threads"), &[&dump], folder.path());
    let pid = victim.id().to_string();
    let holder = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        command.args(["why", &pid, name, "--json"]).env("XDG_RUNTIME_DIR", folder.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        json["chain"][0]["name"].as_str().unwrap().to_owned()
    };
    let module = "typed_heap_threads::linux";
    for (of, thread, function) in [
        (format!("[{module}::Waiting]"), "waiting", "wait"),
        (format!("table (u32, {module}::Running)"), "running", "run"),
    ] {
        let holder = holder(&of);
        assert!(holder.starts_with("thread "), "{holder}");
        assert!(holder.ends_with(&format!(" ({thread}): {module}::{function}")), "{holder}");
    }
    for (of, root) in [("Item", "EAGER"), ("Other", "LAZY")] {
        assert_eq!(holder(&format!("[{module}::{of}]")), format!("thread-local {module}::{root}"));
    }
    // The answering threads have closures without a type here, and their names look like names of the program's
    // threads.
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    command.args(["types", &pid, "--json"]).env("XDG_RUNTIME_DIR", folder.path());
    let json: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(json["wrongSizes"], 0, "{json:#}");
    wait_for_no_children(victim.id());
    drop(victim.stdin.take());
    assert!(victim.wait().unwrap().success());
}

/// Layouts are read from the file with the moved debug information. The file is found by build id, by name or by a
/// link.
#[test]
#[cfg(target_os = "linux")]
fn a_separate_debug_file_gives_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::copy(victim(), path("victim")).unwrap();
    let scan = dump_of(Path::new(&path("victim")), folder.path(), "scan");
    let objcopy = |arguments: &[&str]| {
        let status = Command::new("objcopy").args(arguments).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    let kept = path("kept");
    fs::create_dir(&kept).unwrap();
    objcopy(&["--only-keep-debug", "victim", "kept/victim.debug"]);
    let whole = stdout(&["types", &scan, "--json"]);
    let fields = |arguments: &[&str]| {
        let output = about_memory(&[&["why", &scan, "typed_heap_victim::Copies"], arguments].concat());
        String::from_utf8(output.stdout).unwrap().contains("[Box<dyn typed_heap_victim::Run>; 2]\n")
    };
    objcopy(&["--strip-all", "victim"]);
    assert!(!fields(&[]));
    assert!(fields(&["--symbols", &kept]));
    assert!(fields(&["--program", &path("kept/victim.debug")]));
    assert_eq!(stdout(&["types", &scan, "--json", "--symbols", &kept]), whole);
    // A link to a file beside the program.
    fs::copy(path("kept/victim.debug"), path("linked.debug")).unwrap();
    objcopy(&["--add-gnu-debuglink=linked.debug", "victim"]);
    assert!(fields(&[]));
    // The program's file has been removed.
    fs::remove_file(path("victim")).unwrap();
    assert!(!fields(&[]) && fields(&["--symbols", &kept]));
    let message = fails(&["types", &scan], 1);
    assert!(message.contains(&format!("{}: No such file", path("victim"))), "{message}");
}

/// Returns the bytes that a process and its ended children have written, to files, pipes and sockets.
#[cfg(target_os = "linux")]
fn written(of_process: &str) -> u64 {
    let line = of_process.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.unwrap_or_else(|| panic!("{of_process}")).parse().unwrap()
}

/// The bytes that reading a process may write in addition to its result: the request and the answer.
#[cfg(target_os = "linux")]
const ASKED: u64 = 4096;

/// A process whose threads change the heap is copied. The copies have complete tables and do not disturb the process.
/// Neither process writes contents.
#[test]
#[cfg(target_os = "linux")]
fn a_busy_process_is_copied_many_times() {
    let folder = tempfile::tempdir().unwrap();
    let (sockets, work) = (folder.path().join("run"), folder.path().join("work"));
    [&sockets, &work].iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let mut victim = listening(&program("typed_heap_churn"), &[], &sockets);
    let pid = victim.id().to_string();
    let rounds = if std::env::var_os("THOROUGH").is_some() { 1000 } else { 2 };
    let by_victim = || written(&fs::read_to_string(format!("/proc/{pid}/io")).unwrap());
    let before = by_victim();
    for round in 1..=rounds {
        // The shell counts the bytes of its child when the child ends.
        let mut command = Command::new("sh");
        command.args(["-c", "\"$@\" && cat /proc/$$/io >&2", "sh", env!("CARGO_BIN_EXE_about-memory")]);
        command.args(["types", &pid, "--json", "--no-fix-stacks"]).current_dir(&work);
        let output = command.env("XDG_RUNTIME_DIR", &sockets).env("TMPDIR", &work).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json["blocks"].as_u64() > Some(1000), "{json}");
        let result = output.stdout.len() as u64;
        assert!(written(&String::from_utf8(output.stderr).unwrap()) <= result + ASKED, "{round}");
        assert!(by_victim() - before <= round * ASKED && json["bytes"].as_u64() > Some(20 * ASKED), "{json}");
        assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    let output = command.args(["types", &pid, "--json"]).env("XDG_RUNTIME_DIR", &sockets).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [agree, disagree] = ["agree", "disagree"].map(|key| json[key].as_u64().unwrap());
    assert!(agree > 1000 && disagree * 200 <= agree, "{json:#}");
    wait_for_no_children(victim.id());
    drop(victim.stdin.take());
    let mut rest = String::new();
    victim.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert!(victim.wait().unwrap().success() && rest == "done\n", "{rest}");
}
