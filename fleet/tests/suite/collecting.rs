//! `collect` against servers that answer well and badly.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use memory_fleet::{CollectOptions, CollectTarget, CollectedRound, FleetError, collect, parse_targets};

use crate::support::{Message, block_on, files, query, report};

/// Answers each connection on a thread of its own, and counts them.
fn server(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let (counted, answer) = (Arc::clone(&count), Arc::new(answer));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            counted.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || {
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap_or(0);
                if read == 0 {
                    return;
                }
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let is_known = ["GET /memory/report", "GET /debug/pprof/heap"]
                    .iter()
                    .any(|start| request.starts_with(start));
                assert!(is_known && request.contains("\r\nHost: 127.0.0.1:"), "{request}");
                answer(&mut stream);
            });
        }
    });
    (address, count)
}

fn text(text: impl Into<Vec<u8>>) -> (SocketAddr, Arc<AtomicUsize>) {
    let text = text.into();
    server(move |stream| drop(stream.write_all(&text)))
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn body(amount: i64) -> String {
    report("app (pid 7)", &[("explicit/a", amount), ("heap-allocated", 5000)])
}

fn target(address: SocketAddr, more: &str) -> CollectTarget {
    CollectTarget::parse(&format!("http://{address} {more}")).unwrap()
}

fn options(targets: Vec<CollectTarget>, rounds: u64) -> CollectOptions {
    let mut options = CollectOptions::default();
    options.targets = targets;
    options.rounds = Some(rounds);
    options.interval = Duration::from_millis(1500);
    options.timeout = Duration::from_millis(400);
    options.max_answer = 100_000;
    options
}

fn run(root: &Path, options: &CollectOptions) -> Result<Vec<CollectedRound>, FleetError> {
    let mut rounds = Vec::new();
    block_on(collect(root, options, std::future::pending(), |round| rounds.push(round.clone())))?;
    Ok(rounds)
}

#[test]
fn good_targets_are_collected_beside_bad_ones() {
    let chunked = {
        let body = body(3);
        let (one, other) = body.split_at(20);
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n",
            one.len(),
            other.len()
        )
    };
    let to_the_end = format!("HTTP/1.0 200 OK\r\n\r\n{}", body(2));
    let good = [ok(&body(1)), to_the_end, chunked];
    let bad = [
        "HTTP/1.1 503 Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(200_000)),
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"version\":1".to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n".to_owned(),
        ok("{\"no\": \"report\"}"),
        "SSH-2.0-x\r\n".to_owned(),
        String::new(),
    ];
    let mut targets: Vec<CollectTarget> = good
        .into_iter()
        .enumerate()
        .map(|(number, answer)| {
            target(text(answer).0, &format!("service=s{} version=1.{number} host=h{number}", number / 2))
        })
        .collect();
    let (bad_count, good_count) = (bad.len() + 2, targets.len());
    targets.extend(bad.into_iter().map(|answer| target(text(answer).0, "")));
    // One never answers, and one does not listen.
    targets.push(target(server(|_| thread::sleep(Duration::from_secs(60))).0, ""));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    targets.push(target(closed, ""));

    let folder = tempfile::tempdir().unwrap();
    let rounds = run(folder.path(), &options(targets, 1)).unwrap();
    assert_eq!((rounds[0].targets, rounds[0].answered), (good_count + bad_count, good_count), "{rounds:?}");
    assert_eq!(rounds[0].failures.len(), 5, "{rounds:?}");
    let sql = "SELECT service, version, host, process, pid, amount FROM reports WHERE path = 'explicit/a' ORDER BY host";
    assert_eq!(
        query(folder.path(), sql).unwrap(),
        [
            ["s0", "1.0", "h0", "app", "7", "1"],
            ["s0", "1.1", "h1", "app", "7", "2"],
            ["s1", "1.2", "h2", "app", "7", "3"],
        ]
    );
    let names = files(folder.path());
    assert!(names.len() == 2 && names.iter().all(|name| name.extension().unwrap() == "parquet"), "{names:?}");
}

#[test]
fn each_interval_has_a_file_and_failing_targets_are_asked_less_often() {
    let (good, good_count) = text(ok(&body(1)));
    let (bad, bad_count) = text("HTTP/1.1 500 Wrong\r\n\r\n");
    let mut options = options(vec![target(good, ""), target(bad, "")], 6);
    options.interval = Duration::from_millis(300);
    let folder = tempfile::tempdir().unwrap();
    let rounds = run(folder.path(), &options).unwrap();
    assert_eq!(good_count.load(Ordering::Relaxed), 6);
    // Rounds 0, 1, 3: the pauses double.
    assert_eq!(bad_count.load(Ordering::Relaxed), 3);
    assert_eq!(rounds.iter().map(|round| round.waiting).sum::<usize>(), 3, "{rounds:?}");
    assert_eq!(files(folder.path()).len(), 6);
    assert_eq!(
        query(folder.path(), "SELECT count(*), count(DISTINCT run_id) FROM reports").unwrap(),
        [["18", "6"]]
    );
}

#[test]
fn waiting_reports_are_bounded() {
    let targets = (0..6).map(|number| target(text(ok(&body(number))).0, "")).collect();
    let mut options = options(targets, 1);
    options.max_waiting = 1;
    let folder = tempfile::tempdir().unwrap();
    let rounds = run(folder.path(), &options).unwrap();
    assert_eq!((rounds[0].answered, rounds[0].files.len()), (6, 6));
    assert_eq!(query(folder.path(), "SELECT count(*) FROM reports").unwrap(), [["18"]]);
}

#[test]
fn a_stop_writes_what_is_there() {
    let (address, count) = text(ok(&body(1)));
    let mut options = options(vec![target(address, "")], 1);
    options.interval = Duration::from_secs(3600);
    options.targets[0] = near_start(address, options.interval);
    let folder = tempfile::tempdir().unwrap();
    let stop = async {
        while count.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    let mut answered = 0;
    block_on(collect(folder.path(), &options, stop, |round| answered += round.answered)).unwrap();
    assert_eq!(answered, 1);
    assert_eq!(query(folder.path(), "SELECT count(*) FROM reports").unwrap(), [["3"]]);
}

/// The place of a target in the interval depends on its address, so this one gets a path with an early place.
fn near_start(address: SocketAddr, interval: Duration) -> CollectTarget {
    let targets = (0..).map(|number| target_with_query(address, number));
    let mut early = targets.filter(|target| target.place(interval) < Duration::from_secs(1));
    early.next().unwrap()
}

fn target_with_query(address: SocketAddr, number: u32) -> CollectTarget {
    let mut target = target(address, "");
    target.url.push_str(&format!("?{number}"));
    target
}

#[test]
fn wrong_targets_name_the_line() {
    for (text, expected) in [
        ("ftp://h:1", "line 1: \"ftp://h:1\" does not start with http:// or dns://"),
        ("dns://h/x", "is not dns://HOST:PORT/PATH"),
        ("local", "is not local:"),
        ("pid:1", "is not local:"),
        ("# comment\n\nhttps://h:1/", "line 3: \"https://h:1/\" does not start with http://"),
        ("http://h", "is not http://HOST:PORT/PATH"),
        ("http://:80/", "is not http://HOST:PORT/PATH"),
        ("http://user@h:80/", "is not http://HOST:PORT/PATH"),
        ("http://h:99999/", "is not http://HOST:PORT/PATH"),
        ("http://h:1 size=3", "\"size=3\" is not service=NAME"),
        ("http://h:1 service=", "\"service=\" is not service=NAME"),
    ] {
        let error = parse_targets(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = run(folder.path(), &options(Vec::new(), 1)).unwrap_err();
    assert!(error.to_string().contains("there are no targets"), "{error}");
}

#[test]
fn kills_leave_no_torn_file_and_no_run_twice() {
    let urls: Vec<String> = (0..4).map(|number| format!("http://{}", text(ok(&body(number))).0)).collect();
    let folder = tempfile::tempdir().unwrap();
    for number in 0..50 {
        let mut collector = Command::new(env!("CARGO_BIN_EXE_memory-fleet"))
            .args(["collect", "fleet", "--every", "0.1"])
            .args(&urls)
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From the start of the program to some intervals later.
        thread::sleep(Duration::from_millis(number * 7919 % 600));
        collector.kill().unwrap();
        collector.wait().unwrap();
    }
    let root = folder.path().join("fleet");
    let session = crate::support::open(&root);
    assert!(session.warnings().is_empty(), "{:?}", session.warnings());
    let sql = "SELECT count(*) > 0, count(*) = count(DISTINCT run_id) FROM reports WHERE path = 'explicit/a'";
    assert_eq!(query(&root, sql).unwrap(), [["true", "true"]]);
}

/// Each address of a name is a target; a name without addresses fails alone.
#[test]
fn names_stand_for_their_addresses() {
    let (address, count) = text(ok(&body(1)));
    let port = address.port();
    let targets = [
        format!("dns://localhost:{port} service=search version=1"),
        "dns://no-such-name.invalid:80 service=x".to_owned(),
        format!("http://127.0.0.1:{port}/memory/report?plain"),
        // The address of the first target.
        format!("http://127.0.0.1:{port}/memory/report"),
    ];
    let targets = targets.iter().map(|line| CollectTarget::parse(line).unwrap()).collect();
    let mut options = options(targets, 2);
    options.timeout = Duration::from_secs(5);
    let folder = tempfile::tempdir().unwrap();
    let rounds = run(folder.path(), &options).unwrap();
    assert!(rounds.iter().all(|round| round.answered == 2), "{rounds:?}");
    assert!(
        rounds[0]
            .failures
            .iter()
            .any(|text| text.starts_with("dns://no-such-name.invalid:80/memory/report: ")),
        "{rounds:?}"
    );
    assert_eq!(count.load(Ordering::Relaxed), 4);
    let sql = "SELECT service, version, host, count(*) FROM reports WHERE path = 'explicit/a' AND service = 'search'
        GROUP BY 1, 2, 3";
    // As for the same address without a name.
    let host = address.to_string();
    assert_eq!(query(folder.path(), sql).unwrap(), [["search", "1", &host, "2"]]);
}

/// This process listens, and the program asks it.
#[test]
fn processes_of_this_machine_are_asked_on_their_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = folder.path().join("about-memory");
    let options = memory_reporter::live::ListenOptions::new().name("victim").folder(&sockets);
    let _listening = memory_reporter::live::listen_until_dropped(&options).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_memory-fleet"))
        .args(["collect", "fleet", "local:", "--rounds", "1", "--every", "2"])
        .env("XDG_RUNTIME_DIR", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && text.contains("1 of 1 processes answered"), "{text}");
    let sql = format!(
        "SELECT count(DISTINCT pid), min(pid), bool_and(started IS NOT NULL) FROM reports WHERE pid = {}",
        std::process::id()
    );
    let pid = std::process::id().to_string();
    assert_eq!(query(&folder.path().join("fleet"), &sql).unwrap(), [["1", &pid, "true"]]);
}

/// Programs in Go serve only profiles. Each becomes rows of `stacks` and `frames`.
#[test]
fn profiles_become_stacks() {
    let texts = ["", "inuse_space", "bytes", "main.cache"];
    let mut profile = Message::default()
        .part(1, Message::default().number(1, 1).number(2, 2).0)
        .part(2, Message::default().number(1, 1).number(2, 123_456).0)
        .part(4, Message::default().number(1, 1).part(4, Message::default().number(1, 1).0).0)
        .part(5, Message::default().number(1, 1).number(2, 3).0);
    for text in texts {
        profile = profile.part(6, text);
    }
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", profile.0.len()).into_bytes();
    answer.extend(&profile.0);
    let good = format!("http://{}/debug/pprof/heap service=go version=2 host=h", text(answer).0);
    let bad = format!("http://{}/debug/pprof/heap service=go", text(ok("no profile")).0);
    let targets = [good, bad].iter().map(|line| CollectTarget::parse(line).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let rounds = run(folder.path(), &options(targets, 1)).unwrap();
    assert_eq!((rounds[0].answered, rounds[0].failures.len()), (1, 1), "{rounds:?}");
    let sql = "SELECT service, version, host, coalesce(usable, req) FROM stacks";
    assert_eq!(query(folder.path(), sql).unwrap(), [["go", "2", "h", "123456"]]);
    let sql = "SELECT frames[1]['function'] FROM frames JOIN stacks ON frames.stack_id = stacks.stack_id";
    assert_eq!(query(folder.path(), sql).unwrap(), [["main.cache"]]);
}

#[test]
fn a_bad_file_of_targets_and_a_full_disk_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (root, list) = (folder.path().join("fleet"), folder.path().join("targets.txt"));
    let good = format!("http://{}\n", text(ok(&body(1))).0);
    std::fs::write(&list, &good).unwrap();
    let mut options = options(Vec::new(), 6);
    options.interval = Duration::from_millis(300);
    options.file = Some(list.clone());
    let (place, aside) = (root.join("reports"), root.join("aside"));
    let mut rounds: Vec<CollectedRound> = Vec::new();
    let report = |round: &CollectedRound| {
        rounds.push(round.clone());
        match rounds.len() {
            1 => std::fs::write(&list, "").unwrap(),
            2 => std::fs::write(&list, "http://half").unwrap(),
            3 => {
                std::fs::remove_file(&list).unwrap();
                // No file can be written now.
                std::fs::rename(&place, &aside).unwrap();
                std::fs::write(&place, "").unwrap();
            }
            4 => std::fs::write(&list, &good).unwrap(),
            5 => {
                std::fs::remove_file(&place).unwrap();
                std::fs::rename(&aside, &place).unwrap();
            }
            _ => {}
        }
    };
    block_on(collect(&root, &options, std::future::pending(), report)).unwrap();
    assert!(rounds.iter().all(|round| round.answered == 1), "{rounds:?}");
    for (round, parts) in [
        (0, &[][..]),
        (1, &["the targets stay as they were: there are no targets"]),
        (2, &["targets.txt: line 1: "]),
        (3, &["targets.txt: No such file", "the reports wait: "]),
        (4, &["the reports wait: "]),
        (5, &[]),
    ] {
        let failures = &rounds[round].failures;
        let fits = failures.iter().zip(parts).all(|(failure, part)| failure.contains(part));
        assert!(failures.len() == parts.len() && fits, "{round}: {failures:?}");
    }
    assert_eq!(query(&root, "SELECT count(DISTINCT run_id) FROM reports").unwrap(), [["6"]]);

    // Reports that cannot be written at the end are an error.
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::write(&place, "").unwrap();
    options.rounds = Some(1);
    assert!(run(&root, &options).unwrap_err().to_string().contains("reports"));
}

#[test]
fn the_texts_of_servers_and_late_targets_are_plain() {
    let mut targets: Vec<CollectTarget> = (0..8)
        .map(|_| target(text("HTTP/1.1 503 No\r\nRetry-After: \u{9b}31m\r\nContent-Length: 0\r\n\r\n").0, ""))
        .collect();
    targets.push(target(text(ok(&body(1))).0, ""));
    let folder = tempfile::tempdir().unwrap();
    let rounds = run(folder.path(), &options(targets, 1)).unwrap();
    let failures = &rounds[0].failures;
    assert!(failures.len() == 5 && failures.iter().all(|text| text.contains("status 503")), "{failures:?}");
    assert!(!failures.iter().any(|text| text.contains(char::is_control)), "{failures:?}");
}
