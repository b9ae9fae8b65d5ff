//! The places where a server listens, and their consequences: a Unix socket, and an address that other machines reach.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output};

use about_memory::serve::{Listen, ServeOptions, Server};
use about_memory::session::{Session, SessionOptions};
use memory_report::ReportSet;
use serde_json::{Value, json};

use super::Client;

fn at(path: &Path) -> ServeOptions {
    ServeOptions::new().listen(Listen::Unix(path.to_owned()))
}

fn remote(names: &[&str]) -> ServeOptions {
    let host_names = names.iter().map(|name| (*name).to_owned()).collect();
    ServeOptions::new().listen(Listen::Remote { address: Ipv4Addr::LOCALHOST.into(), host_names })
}

/// Returns the status of the answer to a request for the state with these headers.
fn status(mut stream: impl std::io::Read + std::io::Write, headers: &str) -> u16 {
    stream.write_all(format!("GET /api/state HTTP/1.1\r\n{headers}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0)
}

#[test]
fn a_unix_socket_is_for_this_user_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let session = Session::new(SessionOptions::new());
    let server = Server::start(session.clone(), &at(&path)).unwrap();
    let file = std::fs::symlink_metadata(&path).unwrap();
    assert!(file.file_type().is_socket());
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the socket is in the folder");

    // ssh forwards any port of another machine to the socket. The browser on that machine sends one of the machine's
    // own names.
    let url = server.url();
    let token = url.strip_prefix("http://127.0.0.1:8123/#token=").unwrap();
    let ask = |headers: &str| status(UnixStream::connect(&path).unwrap(), headers);
    let token = format!("Authorization: Bearer {token}\r\n");
    for host in ["127.0.0.1:8123", "localhost:9", "[::1]:65535", "LOCALHOST"] {
        assert_eq!(ask(&format!("Host: {host}\r\n{token}")), 200, "{host}");
        assert_eq!(ask(&format!("Host: {host}\r\n")), 401, "{host} without the token");
    }
    for host in [
        "evil.example:8123",
        "localhost.:9",
        "localhost:09",
        "localhost:65536",
        "localhost:",
        "localhost:x",
        "127.0.0.1.evil:9",
    ] {
        assert_eq!(ask(&format!("Host: {host}\r\n{token}")), 403, "{host}");
    }
    // A page of another server on the reader's machine has another port.
    let of = |origin: &str| ask(&format!("Host: localhost:9\r\nOrigin: {origin}\r\n{token}"));
    assert_eq!(
        (of("http://localhost:9"), of("http://localhost:10"), of("http://127.0.0.1:9")),
        (200, 403, 403)
    );

    // Another server replaces neither a listening server nor a file.
    let taken = Server::start(session.clone(), &at(&path)).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(taken.to_string(), "a file or a running server is at this path; remove it or choose another");
    assert_eq!(ask(&format!("Host: localhost\r\n{token}")), 200);
    drop(server);
    assert!(!path.exists(), "the socket is removed with its server");
    std::fs::write(&path, "a file").unwrap();
    assert!(Server::start(session.clone(), &at(&path)).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"a file");
    // The socket of an ended program does not prevent a new server.
    std::fs::remove_file(&path).unwrap();
    drop(UnixListener::bind(&path).unwrap());
    let again = Server::start(session, &at(&path).port(9000)).unwrap();
    assert!(again.url().starts_with("http://127.0.0.1:9000/#token="));
}

/// A server removes only its own socket, not a later file at the same path.
#[test]
fn a_socket_in_the_place_of_another_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let start = || Server::start(Session::new(SessionOptions::new()), &at(&path));
    let first = start().unwrap();
    std::fs::rename(&path, folder.path().join("moved")).unwrap();
    let second = start().unwrap();
    drop(first);
    assert!(UnixStream::connect(&path).is_ok());
    drop(second);
    assert!(!path.exists());
}

/// Several servers start together at the path of an old socket. One of them gets the path and keeps it.
#[test]
fn one_of_several_servers_gets_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    for _ in 0..20 {
        drop(UnixListener::bind(&path).unwrap());
        let start = || Server::start(Session::new(SessionOptions::new()), &at(&path)).ok();
        let servers: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(servers.len(), 1);
        assert!(UnixStream::connect(&path).is_ok());
        drop(servers);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }
}

/// A socket's address has room for a path of at most 107 bytes.
#[test]
fn a_path_may_be_as_long_as_a_socket_allows() {
    let folder = tempfile::tempdir().unwrap();
    let start = |length: usize| {
        let name = "x".repeat(length - folder.path().as_os_str().len() - 3);
        let inside = folder.path().join(name);
        std::fs::create_dir(&inside).unwrap();
        Server::start(Session::new(SessionOptions::new()), &at(&inside.join("s")))
    };
    drop(start(107).unwrap());
    let error = start(108).unwrap_err().to_string();
    assert!(error.starts_with("the path has 108 bytes"), "{error}");
}

/// While the server computes a long answer, it checks whether the page still waits. At a Unix socket, this check must
/// not cut the answer.
#[test]
fn a_page_at_a_socket_gets_answers_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let session = Session::new(SessionOptions::new());
    let server = Server::start(session.clone(), &at(&path)).unwrap();
    session.insert("chain", crate::session::chain(20_000)).unwrap();
    let token = server.url().split_once("#token=").unwrap().1.to_owned();
    let body = json!({ "query": { "view": "dominators", "snapshot": 1 } }).to_string();
    let mut stream = UnixStream::connect(&path).unwrap();
    let head = format!(
        "POST /api/query HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["rows"][0]["level"], 0);
}

/// A reader on another machine must use a name that the user gave, can change nothing, and gets no private names.
#[test]
fn a_remote_server_is_read_only_and_knows_its_names() {
    let session = Session::new(SessionOptions::new());
    let server =
        Server::start(session, &remote(&["build.example", "192.0.2.7", "[2001:db8::7]", "my_app"])).unwrap();
    let (address, port) = (server.address(), server.address().port());
    let url = server.url();
    let token = url.strip_prefix(&format!("http://build.example:{port}/#token=")).unwrap();
    let token = format!("Authorization: Bearer {token}\r\n");
    let ask = |headers: &str| status(TcpStream::connect(address).unwrap(), headers);
    for host in ["build.example", "BUILD.example", "192.0.2.7", "[2001:db8::7]", "my_app"] {
        assert_eq!(ask(&format!("Host: {host}:{port}\r\n{token}")), 200, "{host}");
        assert_eq!(ask(&format!("Host: {host}:{port}\r\n")), 401, "{host} without the token");
    }
    for host in
        ["127.0.0.1", "localhost", "[::1]", "evil.example", "build.example.evil.example", "xbuild.example"]
    {
        assert_eq!(ask(&format!("Host: {host}:{port}\r\n{token}")), 403, "{host}");
    }
    let own = format!("Host: build.example:{port}\r\n{token}");
    assert_eq!(ask(&format!("{own}Origin: http://build.example:{port}\r\n")), 200);
    assert_eq!(ask(&format!("{own}Origin: http://192.0.2.7:{port}\r\n")), 403);

    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET /api/state HTTP/1.1\r\n{own}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let state: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((&state["readOnly"], &state["anonymize"]), (&json!(true), &json!(true)));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("DELETE /api/snapshots HTTP/1.1\r\n{own}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[test]
fn a_remote_server_needs_names_that_are_names() {
    for names in [
        &[][..],
        &["0.0.0.0"],
        &["[::]"],
        &["host:80"],
        &["a/b"],
        &["a b"],
        &["host."],
        &["*"],
        &[""],
        &["[x]"],
    ] {
        let session = Session::new(SessionOptions::new());
        let error = Server::start(session, &remote(names)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{names:?}");
    }
}

fn serve(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_about-memory");
    // Without a browser and a terminal, the server ends at once.
    Command::new(program).args(["serve", "--no-open", "--idle", "1ms"]).args(arguments).output().unwrap()
}

#[test]
fn the_options_of_a_place_explain_themselves() {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // Only an option opens the server to other machines.
    let usual = serve(&[]);
    assert!(text(&usual.stdout).starts_with("about:memory is at http://127.0.0.1:"));
    assert_eq!(text(&usual.stderr), "");
    let remote = serve(&["--allow-remote", "127.0.0.1", "--host-name", "build.example"]);
    assert!(remote.status.success());
    assert!(text(&remote.stdout).starts_with("about:memory is at http://build.example:"));
    let warning = text(&remote.stderr);
    assert!(
        warning.starts_with("about-memory: warning: other machines reach this page at 127.0.0.1."),
        "{warning}"
    );
    assert_eq!(warning.lines().count(), 1);
    assert!(warning.contains("Nothing is encrypted") && warning.contains("ssh -L"));
    for (wrong, status) in [
        (&["--allow-remote", "127.0.0.1"][..], 2),
        (&["--host-name", "build.example"], 2),
        (&["--allow-remote", "build.example", "--host-name", "build.example"], 2),
        (&["--allow-remote", "127.0.0.1", "--host-name", "a:1"], 1),
        (&["--unix", "/tmp/x", "--allow-remote", "127.0.0.1", "--host-name", "a"], 2),
        (&["--keep", "0"], 2),
        (&["--unix", "/no/such/folder/socket"], 1),
    ] {
        assert_eq!(serve(wrong).status.code(), Some(status), "{wrong:?}");
    }
    let said = |arguments: &[&str]| text(&serve(arguments).stderr);
    let named = said(&["--allow-remote", "127.0.0.1", "--host-name", "a:1"]);
    assert!(
        named.contains(r#""a:1" is not a host name; give it without a port, such as build.example"#),
        "{named}"
    );
    // An address for documentation, which no machine has.
    let elsewhere = said(&["--allow-remote", "2001:db8::7", "--host-name", "a", "--port", "8123"]);
    assert!(elsewhere.contains("[2001:db8::7]:8123"), "{elsewhere}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket").display().to_string();
    let socket = serve(&["--unix", &path, "--port", "9000"]);
    let said = text(&socket.stdout);
    assert!(
        said.contains(&format!("ssh -L 9000:{path} ")) && said.contains("http://127.0.0.1:9000/#token="),
        "{said}"
    );
}

/// The server keeps the last two reports of pages, and all reports that it was started with.
#[test]
fn a_server_keeps_at_most_the_given_number_of_reports() {
    let client = Client::new(&ServeOptions::new().keep(2.try_into().unwrap()));
    for title in ["before", "after"] {
        client.server.add_report(title, ReportSet::new());
    }
    for _ in 0..4 {
        assert_eq!(client.post("/api/compare", &json!({ "baseline": 1, "comparison": 2 })).status, 200);
    }
    let state = client.get("/api/state").json();
    let ids: Vec<_> =
        state["reports"].as_array().unwrap().iter().map(|of| of["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [1, 2, 5, 6]);
}
