//! `serve` with a running process: measurements that are repeated.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::mpsc::{self, Sender};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::herd::Herd;

/// Sends a request to a server. The answer must not be chunked.
fn ask(url: &str, method: &str, path: &str, body: &Value) -> (u16, Vec<u8>) {
    let (origin, token) = url.split_once("/#token=").unwrap();
    let host = origin.strip_prefix("http://").unwrap();
    let (media_type, body) = match method {
        "POST" => ("Content-Type: application/json\r\n", body.to_string()),
        _ => ("", String::new()),
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{media_type}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
    (status, answer[end + 4..].to_vec())
}

/// Starts a server. Returns it with its address.
fn serve(herd: &Herd, pid: u32) -> (Child, String) {
    let mut server = herd.running(&["serve", &pid.to_string(), "--no-open", "--json"]);
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = serde_json::from_str::<Value>(&line).unwrap()["url"].as_str().unwrap().to_owned();
    (server, url)
}

/// The unreported memory of a process is known after its first measurement. Only a process with a collector collects
/// garbage.
#[test]
fn a_page_collects_garbage_and_knows_what_is_unclassified() {
    let mut herd = Herd::new();
    let pid = herd.start("one collector");
    let (mut server, url) = serve(&herd, pid);
    let other = herd.start("two");
    let processes =
        || -> Value { serde_json::from_slice(&ask(&url, "GET", "/api/processes", &Value::Null).1).unwrap() };
    let of = |pid: u32| {
        let all = processes();
        all["processes"].as_array().unwrap().iter().find(|one| one["pid"] == pid).unwrap().clone()
    };
    assert_eq!(of(pid)["requests"], json!(["collect"]));
    assert_eq!(of(other)["unclassified"], Value::Null, "it was not measured");
    let measured = |pid: u32| {
        let (status, body) = ask(&url, "POST", "/api/measure", &json!({ "pids": [pid] }));
        assert_eq!(status, 200);
        serde_json::from_slice::<Value>(&body).unwrap()["report"].as_u64().unwrap()
    };
    let cache = |report: u64| -> String {
        String::from_utf8(
            ask(&url, "GET", &format!("/api/reports/{report}/file?format=text"), &Value::Null).1,
        )
        .unwrap()
    };
    assert!(cache(measured(pid)).contains("3.00 MB"));
    let act =
        |pid: u32, action: &str| ask(&url, "POST", &format!("/api/processes/{pid}/{action}"), &json!({}));
    assert_eq!(act(pid, "collect").0, 200);
    assert!(cache(measured(pid)).contains("2.00 MB"));
    assert_eq!(act(other, "collect").0, 409);
    // DMD does not wait for requests in these processes.
    let (status, reason) = act(other, "record");
    assert!(
        status == 409 && String::from_utf8_lossy(&reason).contains("DMD does not wait for requests"),
        "{reason:?}"
    );
    assert_eq!(act(other, "stop").0, 409);
    kill_process(Pid::from_raw(server.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_page_follows_a_process_in_one_report() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    let (mut server, url) = serve(&herd, pid);
    let post = |path: &str, body: &Value| {
        let (status, body) = ask(&url, "POST", path, body);
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let data = |path: &str| ask(&url, "GET", path, &Value::Null).1;

    // A page cannot replace the measurement that the server was started with.
    assert_eq!(post("/api/measure", &json!({ "pids": [pid], "renew": 1 })).0, 404);
    let (status, made) = post("/api/measure", &json!({ "pids": [pid] }));
    assert_eq!((status, &made["report"]), (200, &json!(2)));
    let before = data("/api/reports/2");
    let same = data("/api/reports/2?against=2");
    herd.nudge(pid);
    // The process grows on another thread, so it may take a few tries.
    loop {
        let (status, renewed) = post("/api/measure", &json!({ "pids": [pid], "renew": 2 }));
        assert_eq!((status, &renewed["report"]), (200, &json!(2)));
        if data("/api/reports/2").len() != before.len() || data("/api/reports/2") != before {
            break;
        }
    }
    assert_ne!(data("/api/reports/2?against=1"), same);
    // A page that knows the shape of the reports gets only their amounts. Any other page gets everything.
    let header = |payload: &[u8]| -> Value {
        let end = 4 + u32::from_le_bytes(payload[..4].try_into().unwrap()) as usize;
        serde_json::from_slice(&payload[4..end]).unwrap()
    };
    let look = |shape: &Value, against: Option<u32>| {
        let look = json!({ "shape": shape, "against": against });
        let (status, payload) =
            ask(&url, "POST", "/api/measure", &json!({ "pids": [pid], "renew": 2, "look": look }));
        assert_eq!(status, 200);
        let header = header(&payload);
        (header["columns"].as_array().unwrap().len(), payload.len(), header["shape"].clone())
    };
    // Between two requests the process may get a new row. Then the second answer contains all rows, like the first.
    let (long, short, shape) = (0..50)
        .find_map(|_| {
            let (all, long, shape) = look(&json!(""), None);
            assert_eq!(all, 10);
            let (amounts, short, _) = look(&shape, None);
            (amounts == 2).then_some((long, short, shape))
        })
        .expect("two requests without a new row between them");
    assert!(short < long / 4, "{long} {short}");
    assert_eq!(look(&shape, Some(1)).0, 10, "a difference has another shape");
    let state: Value = serde_json::from_slice(&data("/api/state")).unwrap();
    assert_eq!(state["reports"].as_array().unwrap().len(), 2);
    assert_eq!((&state["reports"][0]["given"], &state["reports"][1]["given"]), (&json!(true), &json!(false)));
    assert_eq!(state["reports"][1]["pids"], json!([pid]));
    assert_eq!(post("/api/measure", &json!({ "pids": [pid], "renew": 9 })).0, 404);
    kill_process(Pid::from_raw(server.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

/// If a later measurement replaces an anonymized measurement, it also has no private names, even if a page requests
/// them.
#[test]
fn an_anonymized_report_stays_anonymized() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    let (mut server, url) = serve(&herd, pid);
    let measure = |more: Value| {
        let mut body = json!({ "pids": [pid] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, body) = ask(&url, "POST", "/api/measure", &body);
        assert_eq!(status, 200);
        serde_json::from_slice::<Value>(&body).unwrap()["report"].as_u64().unwrap()
    };
    let is_private = |report: u64| {
        let path = format!("/api/reports/{report}/file?format=text");
        let text = String::from_utf8(ask(&url, "GET", &path, &Value::Null).1).unwrap();
        assert_ne!(text.contains("<anonymized>"), text.contains("secret"), "{text}");
        text.contains("<anonymized>")
    };
    let (clear, anonymized) = (measure(json!({})), measure(json!({ "anonymize": true })));
    for _ in 0..2 {
        assert_eq!((is_private(clear), is_private(anonymized)), (false, true));
        assert_eq!(measure(json!({ "renew": clear })), clear);
        assert_eq!(measure(json!({ "renew": anonymized })), anonymized);
    }
    let state: Value = serde_json::from_slice(&ask(&url, "GET", "/api/state", &Value::Null).1).unwrap();
    let reports = state["reports"].as_array().unwrap();
    let flags: Vec<_> = reports.iter().map(|report| report["anonymized"].as_bool().unwrap()).collect();
    assert_eq!(flags, [false, false, true]);
    kill_process(Pid::from_raw(server.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

/// Imitates a process in which DMD waits for requests. The process has the start time `started`. It writes a text that
/// is not a recording into the file, and sends the path of the file to `paths`.
fn recording(mut stream: UnixStream, pid: u32, started: u64, paths: &Sender<String>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let request: Value = serde_json::from_str(&line).unwrap();
    let Some(path) = request["record"].as_str() else {
        let hello = json!({ "version": 1, "pid": pid, "name": "worker", "started": started, "requests": ["dmd-track"] });
        // The server may have closed the connection.
        let _ = writeln!(stream, "{hello}");
        return;
    };
    std::fs::write(path, "no recording").unwrap();
    paths.send(path.to_owned()).unwrap();
    writeln!(stream, "{}", json!({ "version": 1, "sample_bytes": 0, "recording": true })).unwrap();
    let _ = lines.read_line(&mut line);
}

#[test]
fn a_recording_outlives_its_process_until_it_is_open() {
    let mut herd = Herd::new();
    let victim = herd.start("one");
    let (mut server, url) = serve(&herd, victim);
    let pid = 4_200_010;
    let (sender, paths) = mpsc::channel();
    let pretend = |started| {
        let sender = sender.clone();
        herd.pretend(pid, move |stream| {
            let sender = sender.clone();
            std::thread::spawn(move || recording(stream, pid, started, &sender));
        })
    };
    let rows = || -> Vec<Value> {
        let all = ask(&url, "GET", "/api/processes", &Value::Null).1;
        let all: Value = serde_json::from_slice(&all).unwrap();
        all["processes"].as_array().unwrap().iter().filter(|row| row["pid"] == pid).cloned().collect()
    };
    let act = |action: &str| {
        let (status, body) = ask(&url, "POST", &format!("/api/processes/{pid}/{action}"), &json!({}));
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let socket = pretend(1);
    assert_eq!(rows()[0]["recording"], false);
    assert_eq!(act("record"), (200, json!({})));
    assert_eq!(rows()[0]["recording"], true);
    assert_eq!(act("record").0, 409, "it records already");

    std::fs::remove_file(&socket).unwrap();
    let mut ended = json!({
        "pid": pid, "name": "worker", "error": "the process has ended", "ended": true, "recording": true,
        "unopened": null,
    });
    assert_eq!(rows(), std::slice::from_ref(&ended));
    // Another process gets the same process id.
    let socket = pretend(2);
    assert_eq!(rows().len(), 2);
    assert_eq!((&rows()[0]["recording"], &rows()[1]), (&json!(false), &ended));
    let (status, refused) = act("record");
    assert_eq!(
        (status, refused["error"].as_str().unwrap().contains("an earlier process with the id")),
        (409, true)
    );

    // A file that cannot be opened stays.
    for _ in 0..2 {
        let (status, refused) = act("stop");
        assert_eq!(status, 409);
        ended["unopened"] = refused["error"].clone();
        assert_eq!(rows()[1], ended);
        assert_eq!(rows()[0]["unopened"], Value::Null, "the other process must have no recording");
    }
    let dump = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/dmd/dark-matter-mixed.json");
    std::fs::copy(dump, paths.recv().unwrap()).unwrap();
    let (status, opened) = act("stop");
    assert_eq!((status, &opened["stacks"]), (200, &json!(1)), "{opened}");
    let title = opened["title"].as_str().unwrap();
    assert!(title.contains("its end may be missing"), "{title}");
    assert_eq!(rows().len(), 1);
    assert_eq!(act("stop").0, 409);
    std::fs::remove_file(socket).unwrap();
    kill_process(Pid::from_raw(server.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

/// A recording that can never be opened can be saved as it is and discarded. Then the process can record again.
#[test]
fn a_recording_that_cannot_be_opened_is_saved_and_discarded() {
    let mut herd = Herd::new();
    let victim = herd.start("one");
    let (mut server, url) = serve(&herd, victim);
    let pid = 4_200_011;
    let (sender, _paths) = mpsc::channel();
    herd.pretend(pid, move |stream| {
        let sender = sender.clone();
        std::thread::spawn(move || recording(stream, pid, 1, &sender));
    });
    let act = |action: &str| ask(&url, "POST", &format!("/api/processes/{pid}/{action}"), &json!({})).0;
    let file = || {
        let (status, body) = ask(&url, "GET", &format!("/api/processes/{pid}/recording"), &Value::Null);
        (status, String::from_utf8(body).unwrap())
    };
    let slot = || {
        let all: Value = serde_json::from_slice(&ask(&url, "GET", "/api/processes", &Value::Null).1).unwrap();
        let row = all["processes"].as_array().unwrap().iter().find(|row| row["pid"] == pid).unwrap().clone();
        (row["recording"].as_bool().unwrap(), row["unopened"].is_string())
    };
    assert_eq!((act("discard"), file().0), (409, 409), "no recording is left");
    for _ in 0..2 {
        assert_eq!(act("record"), 200);
        assert_eq!((act("discard"), file().0), (409, 409), "it records");
        assert_eq!(slot(), (true, false));
        assert_eq!(act("stop"), 409);
        assert_eq!(slot(), (true, true));
        let (status, raw) = file();
        assert!(status == 200 && raw.contains("no recording"), "{raw}");
        assert_eq!(slot(), (true, true), "saving a copy must not remove the recording");
        assert_eq!(act("discard"), 200);
        assert_eq!(slot(), (false, false));
    }
    // A recording with a length ends without the page: then its file can be read.
    assert_eq!(act("record?milliseconds=soon"), 404);
    assert_eq!(act("record?milliseconds=50"), 200);
    while file().0 != 200 {
        std::thread::yield_now();
    }
    assert_eq!((slot(), act("discard")), ((true, false), 200));
    kill_process(Pid::from_raw(server.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

/// While a process is slow to start a recording, the page shows the list, and other requests are answered.
#[test]
fn a_slow_process_keeps_no_other_waiting() {
    let mut herd = Herd::new();
    let victim = herd.start("one");
    let (mut server, url) = serve(&herd, victim);
    let pid = 4_200_012;
    let (asked, is_asked) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let gate = std::sync::Arc::new(std::sync::Mutex::new(gate));
    let (sender, _paths) = mpsc::channel();
    herd.pretend(pid, move |stream| {
        let (sender, asked, gate) = (sender.clone(), asked.clone(), gate.clone());
        std::thread::spawn(move || {
            let mut first = [0; 512];
            // The request is one line, so it arrives at once.
            let read = rustix::net::recv(&stream, &mut first[..], rustix::net::RecvFlags::PEEK).unwrap().1;
            if String::from_utf8_lossy(&first[..read]).contains("record\":") {
                asked.send(()).unwrap();
                gate.lock().unwrap().recv().unwrap();
            }
            recording(stream, pid, 1, &sender);
        });
    });
    let act = |action: &str| ask(&url, "POST", &format!("/api/processes/{pid}/{action}"), &json!({})).0;
    std::thread::scope(|scope| {
        let record = scope.spawn(|| act("record"));
        is_asked.recv().unwrap();
        let (status, all) = ask(&url, "GET", "/api/processes", &Value::Null);
        let all: Value = serde_json::from_slice(&all).unwrap();
        assert_eq!((status, all["processes"].as_array().unwrap().len()), (200, 2));
        // A second recording cannot start, and a recording that has not started cannot end.
        assert_eq!((act("record"), act("stop"), act("discard")), (409, 409, 409));
        assert!(!record.is_finished());
        go.send(()).unwrap();
        assert_eq!(record.join().unwrap(), 200);
    });
    kill_process(Pid::from_raw(server.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

/// With `--anonymize`, no page gets private names, and the list contains no folders.
#[test]
fn an_anonymizing_server_measures_without_private_names() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    let text = |url: &str, report: u64| {
        let path = format!("/api/reports/{report}/file?format=text");
        String::from_utf8(ask(url, "GET", &path, &Value::Null).1).unwrap()
    };
    let remote = ["--anonymize", "--allow-remote 127.0.0.1 --host-name 127.0.0.1"];
    for options in remote {
        let pid_text = pid.to_string();
        let mut arguments = vec!["serve", &pid_text, "--no-open", "--json"];
        arguments.extend(options.split(' '));
        let mut server = herd.running(&arguments);
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = serde_json::from_str::<Value>(&line).unwrap()["url"].as_str().unwrap().to_owned();
        // The server leaves names out of its first measurement, and of a measurement for which a page requests names.
        let (status, _) = ask(&url, "POST", "/api/measure", &json!({ "pids": [pid], "anonymize": false }));
        assert_eq!(status, 200);
        for report in [1, 2] {
            let text = text(&url, report);
            assert!(text.contains("<anonymized>") && !text.contains("secret"), "{options}: {text}");
        }
        let all: Value = serde_json::from_slice(&ask(&url, "GET", "/api/processes", &Value::Null).1).unwrap();
        assert_eq!(all["processes"][0]["exe"], Value::Null);
        kill_process(Pid::from_raw(server.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
        assert!(server.wait().unwrap().success());
    }
}
