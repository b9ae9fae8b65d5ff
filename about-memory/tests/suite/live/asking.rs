//! Processes that answer, and processes that do not. The text shows the answers and names the missing processes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use memory_reporter::file;
use memory_reporter::memory_report::WarningKind;

use super::herd::{Herd, drain, stderr};
use super::watching::drawn;

#[test]
fn a_process_is_shown_as_a_file_is() {
    let mut herd = Herd::new();
    let pid = herd.start("one").to_string();
    let text = herd.shown(&["show", &pid]);
    assert!(text.contains(&format!("\nMain Process (pid {pid})\n")), "{text}");
    assert!(text.contains(" -- explicit\n"), "{text}");
    assert!(text.contains("3.00 MB "), "{text}");
    assert!(text.contains(" ── secret\n"), "{text}");
}

#[test]
fn several_processes_go_by_their_own_names() {
    let mut herd = Herd::new();
    let pids = [herd.start("one"), herd.start("two"), herd.start("two")];
    for arguments in [
        vec!["show".to_owned(), pids[0].to_string(), pids[1].to_string(), pids[2].to_string()],
        vec!["show".to_owned(), "--all".to_owned()],
    ] {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let text = herd.shown(&arguments);
        for (name, pid) in [("one", pids[0]), ("two", pids[1]), ("two", pids[2])] {
            assert!(text.contains(&format!("\n{name} (pid {pid})\n")), "{text}");
        }
        assert!(!text.contains("Main Process"), "{text}");
    }
}

#[test]
fn who_does_not_answer_is_named_and_costs_only_its_own() {
    let mut herd = Herd::new();
    let pid = herd.start("good");
    // These process ids do not exist.
    herd.answer(4_200_001, "garbage\n");
    herd.answer(4_200_002, "");
    herd.answer(4_200_003, b"\x1f\x8b\x08garbage".to_vec());
    herd.answer(4_200_004, "{\"version\":1,\"error\":\"not\\u001b[31m today\"}\n");
    herd.answer(4_200_005, vec![b'{'; 1 << 20]);
    herd.answer(4_200_006, vec![0x1f; 1 << 20]);
    // One process hangs forever, another closes the connection immediately.
    herd.pretend(4_200_007, drain);
    herd.pretend(4_200_008, drop);
    // These processes start with a valid answer, then die or hang.
    let report = good_report();
    let half = report[..report.len() / 2].to_vec();
    herd.answer(4_200_009, half.clone());
    herd.pretend(4_200_010, move |mut stream| {
        stream.write_all(&half).unwrap();
        thread::spawn(|| drain(stream));
    });
    let output = herd.about_memory(&["save", "--all", "--timeout", "1.5", "reports"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let set = file::read(herd.path().join("reports/about-memory-1/memory-report.json.gz")).unwrap();
    let missing: Vec<_> = set
        .warnings()
        .iter()
        .filter(|w| w.kind == WarningKind::ProcessMissing)
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        missing,
        [
            "process (pid 4200001): missing: sent an answer that about-memory does not understand",
            "process (pid 4200002): missing: closed the connection without an answer",
            "process (pid 4200003): missing: sent a damaged report: not a valid gzip file: invalid gzip header",
            "process (pid 4200004): missing: refused: not\u{1b}[31m today",
            "process (pid 4200005): missing: sent an answer that about-memory does not understand",
            "process (pid 4200006): missing: sent a damaged report: not JSON: expected a JSON value at byte 0",
            "process (pid 4200007): missing: did not answer within 1.5s",
            "process (pid 4200008): missing: closed the connection without an answer",
            "process (pid 4200009): missing: sent a damaged report: truncated after 27 bytes",
            "process (pid 4200010): missing: did not answer within 1.5s",
        ]
    );
    assert!(set.iter().all(|report| report.process == format!("good (pid {pid})")));
    assert!(set.iter().any(|report| report.path == "explicit/cache/data"));
    let told = stderr(&output);
    assert_eq!(told.lines().filter(|line| line.contains(": missing: ")).count(), missing.len(), "{told}");
    assert!(told.contains("about-memory: process (pid 4200004): missing: refused: not\\u{1b}[31m today\n"));
}

fn good_report() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(crate::document("").as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_stuck_reporter_is_told_with_its_process() {
    let mut herd = Herd::new();
    let pids = [herd.start("one stuck"), herd.start("two")];
    let text = herd.shown(&["show", "--all", "--timeout", "4"]);
    let warning = format!("\none (pid {}): stuck: did not answer within 3s\n", pids[0]);
    assert!(text.contains(&warning), "{text}");
    assert_eq!(text.matches(" ── secret\n").count(), 2, "{text}");
}

#[test]
fn a_dead_process_is_missing_among_others_and_an_error_alone() {
    let mut herd = Herd::new();
    let (dead, alive) = (herd.start("dead"), herd.start("alive"));
    herd.kill(dead);
    let output = herd.about_memory(&["show", &dead.to_string(), &alive.to_string()]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let expected = format!("process (pid {dead}): missing: does not listen: ");
    assert!(text.contains(&expected), "{text}");
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    let output = herd.about_memory(&["show", &dead.to_string()]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.starts_with(&format!("about-memory: process {dead}: does not listen: ")), "{told}");
    assert_eq!(told.lines().count(), 1);
}

#[test]
fn what_the_dead_left_is_not_missed_among_all() {
    let mut herd = Herd::new();
    let (dead, alive) = (herd.start("dead"), herd.start("alive"));
    herd.kill(dead);
    let output = herd.about_memory(&["show", "--all"]);
    assert!(output.status.success());
    assert!(!stderr(&output).contains("missing"), "{}", stderr(&output));
    assert!(String::from_utf8(output.stdout).unwrap().contains(&format!("\nalive (pid {alive})\n")));
    assert_eq!(std::fs::read_dir(herd.folder()).unwrap().count(), 1);
}

#[test]
fn a_tree_has_the_children_and_names_those_that_do_not_listen() {
    let mut herd = Herd::new();
    let pid = herd.start("root parent");
    herd.start("somebody-else");
    let output = herd.about_memory(&["show", "--tree", &pid.to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains(&format!("\nMain Process (pid {pid})\n")), "{text}");
    let children = text.lines().filter(|line| line.starts_with("child (pid ") && line.ends_with(')'));
    assert_eq!(children.count(), 1, "{text}");
    assert!(!text.contains("somebody-else"), "{text}");
    assert_eq!(stderr(&output).matches(": missing: does not listen: ").count(), 1, "{}", stderr(&output));
}

#[test]
fn processes_of_one_name_and_number_are_told_apart() {
    let herd = Herd::new();
    let document =
        crate::document(r#"{"process":"same","path":"a","kind":2,"units":1,"amount":1,"description":""}"#);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(document.as_bytes()).unwrap();
    let report = encoder.finish().unwrap();
    for pid in [4_200_001, 4_200_002, 4_200_003] {
        herd.answer(pid, report.clone());
    }
    let text = herd.shown(&["show", "--all"]);
    for name in ["same", "same (pid 4200002)", "same (pid 4200003)"] {
        assert!(text.contains(&format!("\n{name}\n")), "{text}");
    }
}

/// All processes that hang share one timeout: a hundred of them take no longer than one.
#[test]
fn processes_that_hang_are_asked_at_the_same_time() {
    let mut herd = Herd::new();
    let pid = herd.start("good").to_string();
    let hello = |pid: u32| format!("{{\"version\":1,\"pid\":{pid},\"name\":\"hangs\"}}\n");
    for pid in 4_200_000..4_200_100_u32 {
        herd.pretend(pid, move |mut stream| {
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            // The process answers only `hello`.
            if line.contains("hello") {
                stream.write_all(hello(pid).as_bytes()).unwrap();
            } else {
                thread::spawn(|| drain(stream));
            }
        });
    }
    let start = Instant::now();
    let (mut child, mut terminal) = herd.on_terminal(&["top"], 24, 80);
    drawn(&mut terminal, &pid);
    terminal.write_all(b"q").unwrap();
    drawn(&mut terminal, "\u{1b}[?1049l");
    assert!(child.wait().unwrap().success());
    // Each process has a second, so one after the other would take a hundred seconds.
    assert!(start.elapsed() < Duration::from_secs(50));
}

#[test]
fn another_version_of_the_protocol_is_refused_by_name() {
    let herd = Herd::new();
    herd.answer(4_200_001, "{\"version\":99,\"pid\":4200001,\"name\":\"newer\"}\n");
    let said = "newer speaks version 99 of the protocol, and this about-memory version 1";
    let listed = herd.shown(&["list"]);
    assert!(listed.contains(said), "{listed}");
    for (arguments, who) in [
        (["show", "newer"], "newer"),
        (["dump", "newer"], "newer"),
        (["minimize", "4200001"], "process 4200001"),
    ] {
        let output = herd.about_memory(&arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stderr(&output).starts_with(&format!("about-memory: {who}: {said}")), "{}", stderr(&output));
    }
}
