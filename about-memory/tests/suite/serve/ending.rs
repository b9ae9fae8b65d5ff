//! How the program ends: it leaves no file behind, also while a page is open.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn ctrl_c_removes_all_files_though_a_page_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["serve", "--no-open", "--json"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    let (origin, token) = line["url"].as_str().unwrap().split_once("/#token=").unwrap();
    let host = origin.strip_prefix("http://").unwrap();
    let send = |head: &str, body: &[u8]| {
        let mut stream = TcpStream::connect(host).unwrap();
        let head = format!("{head} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n");
        let more =
            format!("Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), more.as_bytes(), body].concat()).unwrap();
        stream
    };
    let snapshot =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden/small-a.fxsnapshot");
    let mut answer = String::new();
    send("PUT /api/snapshots", &std::fs::read(snapshot).unwrap()).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut page = send("GET /api/events?since=0", b"");
    page.read_exact(&mut [0; 12]).unwrap();
    assert_eq!(
        files(folder.path()).len(),
        2,
        "the file that leads to the page, and the folder of the session"
    );

    let pid = rustix::process::Pid::from_raw(program.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(program.wait().unwrap().success());
    assert_eq!(files(folder.path()), Vec::<String>::new());
}
