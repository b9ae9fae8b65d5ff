//! The end of the program: no file is left, even while a page is open.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Returns all files and folders in a folder, with their modes.
fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            all.extend(modes(&path));
        }
        all.push((path, mode));
    }
    all
}

/// Starts a server with its files in a folder, and reads the line that it prints. The umask is the usual one.
fn start(folder: &Path, arguments: &[&str]) -> (Child, Value) {
    let mut program = Command::new("sh")
        .args(["-c", "umask 022; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_about-memory"), "serve", "--json"])
        .args(arguments)
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (program, serde_json::from_str(&line).unwrap())
}

fn kill(program: &Child, signal: Signal) {
    kill_process(Pid::from_raw(program.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn ctrl_c_removes_all_files_though_a_page_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let (mut program, line) = start(folder.path(), &["--no-open"]);
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
    let mut dump = String::new();
    let text = br#"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"live"},"blockList":[],"traceTable":{},"frameTable":{}}"#;
    send("PUT /api/stacks", text).read_to_string(&mut dump).unwrap();
    assert!(dump.starts_with("HTTP/1.1 200"), "{dump}");
    assert_eq!(
        files(folder.path()).len(),
        2,
        "folders for the file that redirects to the page, and of the session"
    );
    for (path, mode) in modes(folder.path()) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}", path.display());
    }

    kill(&program, Signal::INT);
    assert!(program.wait().unwrap().success());
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

/// The terminal of the program closes.
#[test]
fn the_server_ends_with_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let (mut program, _) = start(folder.path(), &["--no-open"]);
    kill(&program, Signal::HUP);
    assert!(program.wait().unwrap().success());
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

/// A killed server cannot remove its files. The next server removes them, and keeps all other files.
#[test]
fn the_files_of_a_killed_server_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let others = ["about-memory-1", "about-memory-reports", "else"];
    for other in others {
        std::fs::create_dir(folder.path().join(other)).unwrap();
    }
    let (mut alive, _) = start(folder.path(), &["--no-open"]);
    let before = files(folder.path());
    let (mut killed, _) = start(folder.path(), &["--no-open"]);
    let left: Vec<_> = files(folder.path()).into_iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(left.len(), 1);
    kill(&killed, Signal::KILL);
    killed.wait().unwrap();
    let (mut next, _) = start(folder.path(), &["--no-open"]);
    let now = files(folder.path());
    assert!(before.iter().all(|name| now.contains(name)), "{before:?} {now:?}");
    assert!(!now.contains(&left[0]), "{now:?}");
    for server in [&mut alive, &mut next] {
        kill(server, Signal::TERM);
        assert!(server.wait().unwrap().success());
    }
    let mut rest = files(folder.path());
    rest.sort();
    assert_eq!(rest, others);
}

/// The program that opens browsers fails: the server prints an error, and waits for that program.
#[test]
fn a_browser_that_cannot_be_opened_is_an_error_in_words() {
    let (folder, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let opener = programs.path().join("xdg-open");
    std::fs::write(&opener, "#!/bin/sh\nexit 3\n").unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths([programs.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .arg("serve")
        .env("TMPDIR", folder.path())
        .env("PATH", path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(
        line,
        "about-memory: no browser was opened (xdg-open ended with exit status: 3); open the address above in \
         a browser\n"
    );
    let id = program.id();
    let children = std::fs::read_dir(format!("/proc/{id}/task"))
        .unwrap()
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    assert_eq!(children.collect::<String>(), "", "it has waited for the program");
    kill(&program, Signal::TERM);
    assert!(program.wait().unwrap().success());
}

/// The server's socket has been removed, so no request can reach the server.
#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_a_server_whose_socket_is_gone() {
    let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let socket = place.path().join("page");
    let (mut program, _) = start(folder.path(), &["--no-open", "--unix", socket.to_str().unwrap()]);
    std::fs::remove_file(&socket).unwrap();
    kill(&program, Signal::INT);
    assert!(program.wait().unwrap().success());
}

#[test]
fn an_idle_server_ends_and_one_with_a_page_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Instant::now();
    let (mut program, line) = start(folder.path(), &["--no-open", "--idle", "3s"]);
    let (origin, token) = line["url"].as_str().unwrap().split_once("/#token=").unwrap();
    let host = origin.strip_prefix("http://").unwrap();
    let mut page = TcpStream::connect(host).unwrap();
    let head = format!("GET /api/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
    page.write_all(head.as_bytes()).unwrap();
    page.read_exact(&mut [0; 12]).unwrap();
    std::thread::sleep(Duration::from_millis(3500).saturating_sub(begin.elapsed()));
    assert_eq!(program.try_wait().unwrap(), None, "a page is open");
    drop(page);
    assert!(program.wait().unwrap().success());
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

/// A time may have a unit. An invalid time is an error that names the option.
#[test]
fn times_have_units() {
    for (time, is_good) in [
        ("30m", true),
        ("2h", true),
        ("1800", true),
        ("0.5s", true),
        ("1e3", true),
        ("1e-1", true),
        ("1e3ms", true),
        ("ms", false),
        ("5ss", false),
        ("30x", false),
        ("m", false),
        ("48h", false),
    ] {
        // The help for a wrong option has priority over the error for a missing file.
        let output = Command::new(env!("CARGO_BIN_EXE_about-memory"))
            .args(["serve", "--no-open", "--idle", time, "no-such-file"])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(if is_good { 1 } else { 2 }), "{time}: {error}");
        assert_eq!(error.contains("--idle"), !is_good, "{error}");
    }
}
