//! The answers to valid and invalid requests.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use memory_reporter::{memory_report::WarningKind, tree::Forest};

use super::{Victim, amount};

#[test]
fn hello_says_who_it_is() {
    let victim = Victim::start("named");
    let hello = victim.ask("\"hello\"");
    let hello: serde_json::Value = serde_json::from_str(&hello).unwrap();
    assert_eq!(hello["version"], 1);
    assert_eq!(hello["pid"], victim.pid());
    assert_eq!(hello["name"], "a-name");
    assert_eq!(hello["exe"], std::env::current_exe().unwrap().to_str().unwrap());
    assert!(hello["started"].as_u64().unwrap() > 1_600_000_000);
    assert_eq!(hello["requests"], serde_json::json!([]));
}

#[test]
fn a_report_has_everything_that_a_collection_has() {
    let victim = Victim::start("listen");
    let set = victim.report("");
    let process = format!("Main Process (pid {})", victim.pid());
    assert!(set.iter().all(|report| report.process == process));
    assert_eq!(amount(&set, "names/secret"), Some(1));
    assert_eq!(amount(&set, "minimized"), Some(0));
    assert!(amount(&set, "heap-allocated").unwrap() > 0);
    assert!(Forest::new(&set).amount("explicit/heap-unclassified").is_some());
    assert!(set.usable_size_known());
}

#[test]
fn a_report_is_anonymous_minimized_and_named_if_asked_for() {
    let victim = Victim::start("named");
    let set = victim.report(",\"anonymize\":true,\"minimize\":true,\"named\":true");
    assert_eq!(amount(&set, "names/<anonymized>"), Some(1));
    assert_eq!(amount(&set, "names/secret"), None);
    assert_eq!(amount(&set, "minimized"), Some(3));
    let process = format!("a-name (pid {})", victim.pid());
    assert!(set.iter().all(|report| report.process == process));
}

#[test]
fn minimizing_says_what_it_brought() {
    let victim = Victim::start("listen");
    let answer = victim.ask("\"minimize\"");
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert!(answer["resident_before"].as_u64().unwrap() > 0);
    assert!(answer["resident"].as_u64().unwrap() > 0);
    assert_eq!(amount(&victim.report(""), "minimized"), Some(3));
}

/// The request does the same as the button GC of about:memory. A program without collectors does not offer the request.
#[test]
fn garbage_is_collected_on_request() {
    let victim = Victim::start("collector");
    let hello: serde_json::Value = serde_json::from_str(&victim.ask("\"hello\"")).unwrap();
    assert_eq!(hello["requests"], serde_json::json!(["collect"]));
    let answer: serde_json::Value = serde_json::from_str(&victim.ask("\"collect\"")).unwrap();
    assert!(answer["resident_before"].as_u64().unwrap() > 0 && answer["resident"].as_u64().unwrap() > 0);
    assert_eq!(amount(&victim.report(""), "minimized"), Some(10));
    let without = Victim::start("listen");
    assert!(without.ask("\"collect\"").contains("unknown request"));
}

#[test]
fn the_variable_is_enough() {
    let victim = Victim::start_with("rest", |command, _| {
        command.env("ABOUT_MEMORY", " listen, ");
    });
    assert_eq!(amount(&victim.report(""), "names/secret"), Some(1));
    let (status, stderr) = victim.end();
    assert!(status.success());
    assert_eq!(stderr, "");
}

#[test]
fn a_wrong_word_in_the_variable_is_one_line() {
    let victim = Victim::start_with("rest", |command, _| {
        command.env("ABOUT_MEMORY", "lisen\n,listen");
    });
    assert_eq!(amount(&victim.report(""), "names/secret"), Some(1));
    let (status, stderr) = victim.end();
    assert!(status.success());
    assert_eq!(
        stderr,
        "memory-reporter: ABOUT_MEMORY: unknown word \"lisen\": expected listen, signals or signals=FOLDER\n"
    );
}

#[test]
fn who_asks_again_sees_the_same_threads() {
    let victim = Victim::start("listen");
    let threads = || -> Vec<String> {
        let set = victim.report("");
        let stacks =
            set.iter().filter(|report| report.path.starts_with("explicit/threads/stacks/about-memory"));
        stacks.map(|report| report.path.to_owned()).collect()
    };
    let first = threads();
    assert_eq!(first.len(), 2);
    // A thread may still be about to become idle.
    super::until("the same threads", || (threads() == threads()).then_some(()));
}

#[test]
fn nobody_listens_unasked() {
    let victim = Victim::start("rest");
    assert!(!victim.folder().exists());
}

#[test]
fn bad_requests_are_refused_in_one_line() {
    let victim = Victim::start("listen");
    let long = format!("{{\"version\":1,\"request\":\"{}\"}}\n", "x".repeat(5000));
    for (request, expected) in [
        (&b"hello\n"[..], "not a request: "),
        (b"\xff\xfe\0\x01\n", "not a request: "),
        (b"[[[[[[[[\n", "not a request: "),
        (b"{}\n", "not a request: missing field `version`"),
        (b"{\"version\":1}\n", "not a request: missing field `request`"),
        (b"{\"version\":2,\"request\":\"hello\"}\n", "version 2 is not supported (expected 1)"),
        (
            b"{\"version\":1,\"request\":\"dump\"}\n",
            "unknown request \\\"dump\\\": expected one of hello, report, minimize",
        ),
        (long.as_bytes(), "not a request: expected a line of at most 4096 bytes"),
    ] {
        let answer = String::from_utf8(victim.ask_raw(request)).unwrap();
        assert_eq!(answer.lines().count(), 1, "{answer}");
        assert!(answer.starts_with("{\"version\":1,\"error\":\""), "{answer}");
        assert!(answer.contains(expected), "{answer}");
    }
    assert!(victim.ask("\"hello\"").contains("\"pid\""));
}

#[test]
fn functions_answer_their_requests() {
    let victim = Victim::start("functions");
    let hello = victim.ask("\"hello\"");
    assert!(hello.contains("\"requests\":[\"dmd-dump\",\"echo\",\"fails\",\"hello\",\"panics\"]"), "{hello}");
    assert_eq!(victim.ask("\"echo\",\"more\":[1]"), "{\"version\":1,\"request\":\"echo\",\"more\":[1]}\n");
    assert_eq!(victim.ask("\"fails\""), "{\"version\":1,\"error\":\"not today\"}\n");
    let panicked = "the function for \\\"panics\\\" panicked: on purpose";
    assert_eq!(victim.ask("\"panics\""), format!("{{\"version\":1,\"error\":\"{panicked}\"}}\n"));
    assert!(victim.ask("\"dropped\"").contains("unknown request"));
}

#[test]
fn a_stuck_reporter_is_named_and_costs_only_itself() {
    let victim = Victim::start("stuck");
    let set = victim.report(",\"deadline_ms\":1000");
    let warning = |kind| set.warnings().iter().find(|warning| warning.kind == kind).unwrap().to_string();
    assert_eq!(warning(WarningKind::TimedOut), "stuck: did not answer within 1s");
    assert!(warning(WarningKind::Panicked).starts_with("panics: panicked, "));
    assert_eq!(amount(&set, "names/secret"), Some(1));
    // The stuck reporter is not run again, so the long deadline does not delay the answer.
    let set = victim.report(",\"deadline_ms\":600000");
    assert!(set.warnings().iter().any(|warning| warning.kind == WarningKind::TimedOut));
}

#[test]
fn a_thread_answers_with_its_own_reporters() {
    let victim = Victim::start("local");
    let first = amount(&victim.report(""), "turns").unwrap();
    let set = victim.report("");
    assert!(amount(&set, "turns").unwrap() > first);
    assert_eq!(amount(&set, "names/secret"), Some(1));
}

#[test]
fn a_thread_that_does_not_answer_is_named() {
    let victim = Victim::start("deaf");
    // The threads have a quarter of the deadline.
    let set = victim.report(",\"deadline_ms\":1000");
    let warning = set.warnings().iter().find(|warning| warning.kind == WarningKind::TimedOut).unwrap();
    assert!(warning.subject.starts_with("thread "), "{warning}");
    let why = "its reporter is missing: it did not call memory_reporter::answer_here() within 250ms";
    assert_eq!(warning.message, why);
    assert_eq!(amount(&set, "names/secret"), Some(1));
    // The collection does not wait for this thread again.
    let set = victim.report(",\"deadline_ms\":600000");
    assert!(set.warnings().iter().any(|warning| warning.subject.starts_with("thread ")));
}

#[test]
fn a_stuck_hook_costs_only_minimizing() {
    let victim = Victim::start("stuck-hook");
    // One request reaches the hook, and the others get an error.
    let mut hanging = Vec::new();
    super::until("a request that reaches the hook", || {
        let mut peer = victim.connect();
        peer.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        peer.write_all(b"{\"version\":1,\"request\":\"minimize\"}\n").unwrap();
        let mut answer = String::new();
        // The request that waits for the hook gets no answer.
        let _ = peer.read_to_string(&mut answer);
        hanging.push(peer);
        answer.contains("memory usage is still being minimized").then_some(())
    });
    let answer = victim.ask("\"report\",\"minimize\":true");
    assert!(answer.contains("memory usage is still being minimized"), "{answer}");
    assert_eq!(amount(&victim.report(""), "names/secret"), Some(1));
}

#[test]
fn listening_ends_with_the_last_share_of_it() {
    let victim = Victim::start("twice");
    assert!(victim.ask("\"hello\"").contains("\"pid\""));
    let mode = std::fs::metadata(victim.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
