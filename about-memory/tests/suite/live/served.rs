//! `serve` with a running process: measurements that follow it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::herd::Herd;

/// Asks a server; the answer must not come in chunks.
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

#[test]
fn a_page_follows_a_process_in_one_report() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    let mut server = herd.running(&["serve", &pid.to_string(), "--no-open", "--json"]);
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = serde_json::from_str::<Value>(&line).unwrap()["url"].as_str().unwrap().to_owned();
    let post = |path: &str, body: &Value| {
        let (status, body) = ask(&url, "POST", path, body);
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let data = |path: &str| ask(&url, "GET", path, &Value::Null).1;

    // The measurement that the server was started with stays as it is.
    assert_eq!(post("/api/measure", &json!({ "pids": [pid], "renew": 1 })).0, 404);
    let (status, made) = post("/api/measure", &json!({ "pids": [pid] }));
    assert_eq!((status, &made["report"]), (200, &json!(2)));
    let before = data("/api/reports/2");
    let same = data("/api/reports/2?against=2");
    herd.nudge(pid);
    // The process grows on another thread.
    loop {
        let (status, renewed) = post("/api/measure", &json!({ "pids": [pid], "renew": 2 }));
        assert_eq!((status, &renewed["report"]), (200, &json!(2)));
        if data("/api/reports/2").len() != before.len() || data("/api/reports/2") != before {
            break;
        }
    }
    assert_ne!(data("/api/reports/2?against=1"), same);
    let state: Value = serde_json::from_slice(&data("/api/state")).unwrap();
    assert_eq!(state["reports"].as_array().unwrap().len(), 2);
    assert_eq!((&state["reports"][0]["given"], &state["reports"][1]["given"]), (&json!(true), &json!(false)));
    assert_eq!(state["reports"][1]["pids"], json!([pid]));
    assert_eq!(post("/api/measure", &json!({ "pids": [pid], "renew": 9 })).0, 404);
    kill_process(Pid::from_raw(server.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}
