//! The rules of access, and the limits for a hostile client: one test for each rule.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use about_memory::serve::{OpenedStacks, ServeOptions, Server, change_redirect, redirect_file};
use about_memory::session::{Session, SessionOptions};
use memory_export::dmd::RecordingWindow;
use serde_json::json;

use super::Client;

fn client() -> Client {
    Client::new(&ServeOptions::new())
}

#[test]
fn the_server_listens_on_the_loopback_address_only() {
    let client = client();
    assert_eq!(client.server.address().ip().to_string(), "127.0.0.1");
    // A second server at the same port fails with a reason.
    let port = client.server.address().port();
    let session = Session::new(SessionOptions::new());
    assert!(Server::start(session, &ServeOptions::new().port(port)).is_err());
}

#[test]
fn only_the_names_of_this_machine_are_hosts() {
    let client = client();
    let port = client.server.address().port();
    let ask = |hosts: &str| {
        let request =
            format!("GET /api/state HTTP/1.1\r\n{hosts}Authorization: Bearer {}\r\n\r\n", client.token);
        client.raw(request.as_bytes()).status
    };
    for own in ["127.0.0.1", "localhost", "LocalHost", "[::1]"] {
        assert_eq!(ask(&format!("Host: {own}:{port}\r\n")), 200, "{own}");
    }
    for foreign in [
        format!("evil.example:{port}"),
        format!("localhost6:{port}"),
        format!("0.0.0.0:{port}"),
        format!("localhost.:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("127.1:{port}"),
        "127.0.0.1".to_owned(),
        "127.0.0.1:1".to_owned(),
        format!("127.0.0.1:0{port}"),
        String::new(),
    ] {
        assert_eq!(ask(&format!("Host: {foreign}\r\n")), 403, "{foreign}");
    }
    assert_eq!(ask(""), 403, "no host");
    let twice = format!("Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n");
    assert_eq!(ask(&twice), 400, "two hosts");
}

/// A page that rebinds its own name to 127.0.0.1 gets no data, not even the page.
#[test]
fn a_rebinding_page_reads_nothing() {
    let client = client();
    let response = client.raw(b"GET / HTTP/1.1\r\nHost: evil.example\r\nSec-Fetch-Site: same-origin\r\n\r\n");
    assert_eq!(response.status, 403);
}

#[test]
fn requests_of_other_origins_are_refused() {
    let client = client();
    let port = client.server.address().port();
    let ask = |more: &str| client.raw(client.head("GET /api/state", more).as_bytes()).status;
    assert_eq!(ask(&format!("Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n")), 200);
    assert_eq!(ask("Sec-Fetch-Site: none\r\n"), 200);
    for origin in
        ["http://evil.example", "null", "http://127.0.0.1:1", &format!("https://127.0.0.1:{port}"), ""]
    {
        assert_eq!(ask(&format!("Origin: {origin}\r\n")), 403, "{origin}");
    }
    for site in ["cross-site", "same-site", "something"] {
        assert_eq!(ask(&format!("Sec-Fetch-Site: {site}\r\n")), 403, "{site}");
    }
    // The link in a file leads to the page, which contains no data. No other page can load its parts or put it into a
    // frame.
    let page = |more: &str| {
        client.raw(client.head("GET /", &format!("Sec-Fetch-Site: cross-site\r\n{more}")).as_bytes()).status
    };
    assert_eq!(page("Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"), 200);
    assert_eq!(page("Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n"), 403);
    assert_eq!(page("Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: script\r\n"), 403);
    assert_eq!(
        ask("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"),
        403
    );
}

#[test]
fn every_request_for_data_needs_the_token() {
    let client = client();
    let host = client.server.address();
    assert_eq!(client.token.len(), 64);
    for path in [
        "/api/state",
        "/api/processes",
        "/api/events",
        "/api/reports/1",
        "/api/reports/1/file",
        "/api/nothing",
    ] {
        for line in [
            String::new(),
            "Authorization: Bearer \r\n".to_owned(),
            format!("Authorization: Bearer {}0\r\n", client.token),
            format!("Authorization: Bearer {}\r\n", &client.token[1..]),
            format!("Authorization: Bearer {}\r\n", "0".repeat(64)),
            format!("Authorization: Basic {}\r\n", client.token),
            format!("Cookie: token={}\r\n", client.token),
        ] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{line}\r\n");
            assert_eq!(client.raw(request.as_bytes()).status, 401, "{path} {line}");
        }
    }
    // A token in an address is not accepted, because browsers store addresses and send them to other sites.
    let request = format!("GET /api/state?token={} HTTP/1.1\r\nHost: {host}\r\n\r\n", client.token);
    assert_eq!(client.raw(request.as_bytes()).status, 401);
    for method in ["POST", "PUT", "DELETE"] {
        let request = format!("{method} /api/snapshots/1 HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(client.raw(request.as_bytes()).status, 401);
    }
    let other = Client::new(&ServeOptions::new());
    assert_ne!(client.token, other.token);
}

/// `go tool pprof` cannot send a header. It gets an address that returns one file, once.
#[test]
fn a_ticket_is_good_for_one_file_once() {
    let client = client();
    let host = client.server.address();
    let write = |format, _: Option<RecordingWindow>, out: &mut dyn std::io::Write| {
        write!(out, "{format:?}").map_err(|error| error.to_string())
    };
    client.server.add_stacks("stacks", OpenedStacks::new(about_memory::HtmlOptions::new()).files(write));
    let export = json!({ "format": "pprof" });
    let path = client.post("/api/stacks/1/ticket", &export).json()["path"].as_str().unwrap().to_owned();
    assert!(
        path.starts_with("/ticket/") && path.len() == "/ticket/".len() + 64 && !path.contains(&client.token)
    );
    let ask = |path: &str, host: &str| {
        client.raw(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    };
    // Neither a wrong ticket nor a wrong host uses up the ticket.
    assert_eq!(ask(&format!("/ticket/{}", "0".repeat(64)), &host.to_string()).status, 404);
    assert_eq!(ask(&path, "evil.example").status, 403);
    let first = ask(&path, &host.to_string());
    assert_eq!((first.status, first.body.as_slice()), (200, b"Pprof".as_slice()));
    assert_eq!(ask(&path, &host.to_string()).status, 404, "once");
    assert_eq!(client.post("/api/stacks/2/ticket", &export).status, 404);
    // If there are too many unused tickets, the oldest are removed.
    let all: Vec<_> = (0..17)
        .map(|_| client.post("/api/stacks/1/ticket", &export).json()["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ask(&all[0], &host.to_string()).status, 404);
    assert_eq!(ask(&all[16], &host.to_string()).status, 200);
}

/// Anyone may load the page, so it must not contain the token.
#[test]
fn the_page_has_neither_data_nor_token() {
    let client = client();
    let host = client.server.address();
    for path in ["/", "/serve.js", "/serve.css"] {
        let response = client.raw(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert_eq!(response.status, 200, "{path}");
        assert!(!response.body.is_empty(), "{path}");
        let all = format!("{}{}", response.head, String::from_utf8_lossy(&response.body));
        assert!(!all.contains(&client.token), "{path}");
    }
}

#[test]
fn every_response_has_the_headers_that_keep_others_out() {
    let client = client();
    let host = client.server.address();
    let refused = client.raw(format!("GET /api/state HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    for response in [client.get("/"), client.get("/api/state"), client.get("/nothing"), refused] {
        let policy = response.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ] {
            assert!(policy.contains(part), "{part} in {policy}");
        }
        assert!(!policy.contains("unsafe"));
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(response.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(response.header("cross-origin-opener-policy"), Some("same-origin"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        assert!(!response.head.contains("Access-Control"));
        for absent in ["server", "location", "set-cookie"] {
            assert_eq!(response.header(absent), None);
        }
    }
}

#[test]
fn a_body_needs_its_type() {
    let client = client();
    let body = json!({ "query": { "view": "dominators", "snapshot": 1 } }).to_string();
    for media_type in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"]
    {
        assert_eq!(
            client.send("POST", "/api/query", media_type, body.as_bytes()).status,
            415,
            "{media_type}"
        );
    }
    assert_eq!(client.send("POST", "/api/query", "application/json", body.as_bytes()).status, 404);
    assert_eq!(client.send("PUT", "/api/snapshots", "application/json", b"x").status, 415);
    assert_eq!(client.send("GET", "/api/state", "application/json", b"x").status, 415);
}

/// A request cannot name a file.
#[test]
fn requests_name_things_by_number_only() {
    let client = client();
    for path in [
        "/api/reports/../../etc/passwd",
        "/api/reports/%2e%2e%2fetc%2fpasswd",
        "/api/reports//etc/passwd",
        "/api/reports/-1",
        "/api/reports/1e3",
        "/api/reports/99999999999999999999",
        "/../assets/serve.js",
        "/etc/passwd",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    for body in [
        json!({ "query": { "view": "dominators", "snapshot": "/etc/passwd" } }),
        json!({ "query": { "view": "dominators", "snapshot": 1, "path": "/etc/passwd" } }),
        json!({ "query": { "view": "file", "path": "/etc/passwd" } }),
    ] {
        assert_eq!(client.post("/api/query", &body).status, 400, "{body}");
    }
    let body = json!({ "format": "fxsnapshot", "snapshot": 1, "path": "/etc/passwd" });
    assert_eq!(client.post("/api/export", &body).status, 400);
}

#[test]
fn requests_have_limits() {
    let client = Client::new(&ServeOptions::new().max_upload(1000));
    let host = client.server.address();
    let long = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert_eq!(client.raw(long.as_bytes()).status, 431);
    let many = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{}\r\n", "X: 1\r\n".repeat(100));
    assert_eq!(client.raw(many.as_bytes()).status, 431);
    let body = vec![b' '; (1 << 20) + 1];
    assert_eq!(client.send("POST", "/api/query", "application/json", &body).status, 413);
    assert_eq!(client.send("PUT", "/api/snapshots", "application/octet-stream", &[0; 1001]).status, 413);
    for (line, status) in [
        ("TRACE /", 405),
        ("HEAD /", 405),
        ("OPTIONS /api/state", 405),
        ("CONNECT evil.example:80", 405),
        ("GET http://evil.example/", 400),
    ] {
        assert_eq!(client.raw(client.head(line, "").as_bytes()).status, status, "{line}");
    }
    assert_eq!(client.raw(format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes()).status, 505);
    let smuggled = client.head("POST /api/query", "Transfer-Encoding: chunked\r\n");
    assert_eq!(client.raw(smuggled.as_bytes()).status, 411);
    for length in ["-1", "+1", "1x", "", "99999999999999999999999"] {
        let request = client.head("POST /api/query", &format!("Content-Length: {length}\r\n"));
        assert_eq!(client.raw(request.as_bytes()).status, 400, "{length}");
    }
    let twice = client.head("POST /api/query", "Content-Length: 1\r\nContent-Length: 2\r\n");
    assert_eq!(client.raw(twice.as_bytes()).status, 400);
    for garbage in [b"\x16\x03\x01".as_slice(), b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n"] {
        let mut stream = TcpStream::connect(host).unwrap();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    assert_eq!(client.get("/api/state").status, 200, "the server still answers");
}

/// Anyone who reaches the port can open connections. Connections without the token make room for others, the oldest
/// first.
#[test]
fn connections_without_the_token_make_room() {
    let client = client();
    // Each connection waits for a request that never arrives.
    let idle: Vec<_> = (0..200).map(|_| TcpStream::connect(client.server.address()).unwrap()).collect();
    // Connections are accepted in order, so the server accepted all idle connections before these connections.
    for _ in 0..100 {
        assert_eq!(client.get("/api/state").status, 200);
    }
    let mut first = &idle[0];
    assert_eq!(first.read(&mut [0]).unwrap_or(0), 0, "the oldest has ended");
    let mut last = &idle[199];
    last.set_nonblocking(true).unwrap();
    assert_eq!(last.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "the youngest stays");
}

#[test]
fn connections_with_the_token_have_a_limit() {
    let client = client();
    let page = || {
        let mut page = TcpStream::connect(client.server.address()).unwrap();
        page.write_all(client.head("GET /api/events?since=0", "").as_bytes()).unwrap();
        page.read_exact(&mut [0; 12]).unwrap();
        page
    };
    let pages: Vec<_> = (0..64).map(|_| page()).collect();
    assert_eq!(client.get("/api/state").status, 503);
    // A refused client that sends no request does not delay other answers.
    let refused: Vec<_> = (0..200).map(|_| TcpStream::connect(client.server.address()).unwrap()).collect();
    drop(pages);
    // The server notices that the clients have closed when it writes to them.
    client.session.close();
    while client.get("/api/state").status != 200 {
        std::thread::yield_now();
    }
    drop(refused);
}

#[test]
fn a_read_only_server_changes_nothing() {
    let client = Client::new(&ServeOptions::new().read_only(true));
    for action in ["minimize", "collect", "heap-snapshot", "types", "dmd-dump", "record", "stop", "discard"] {
        let path = format!("/api/processes/1/{action}");
        assert_eq!(client.post(&path, &json!({})).status, 403, "{action}");
    }
    assert_eq!(client.send("PUT", "/api/snapshots", "application/octet-stream", b"x").status, 403);
    for path in ["/api/reports", "/api/stacks"] {
        assert_eq!(client.send("PUT", path, "application/octet-stream", b"x").status, 403, "{path}");
    }
    assert_eq!(client.send("DELETE", "/api/snapshots/1", "text/plain", b"").status, 403);
    assert_eq!(client.send("DELETE", "/api/snapshots", "text/plain", b"").status, 403);
    let minimize = json!({ "pids": [1], "minimize": true });
    assert_eq!(client.post("/api/measure", &minimize).status, 403);
    let state = client.get("/api/state");
    assert_eq!((state.status, &state.json()["readOnly"]), (200, &json!(true)));
}

/// A page's measurement may replace another one, but never a report that the server was started with.
#[test]
fn reports_that_the_server_was_started_with_stay() {
    let client = Client::new(&ServeOptions::new().read_only(true));
    for title in ["before", "after"] {
        client.server.add_report(title, memory_report::ReportSet::new());
    }
    let compare = json!({ "baseline": 1, "comparison": 2 });
    for _ in 0..60 {
        assert_eq!(client.post("/api/compare", &compare).status, 200);
    }
    let state = client.get("/api/state").json();
    let ids: Vec<_> = state["reports"].as_array().unwrap().iter().map(|of| of["id"].clone()).collect();
    assert_eq!((ids.len(), &ids[0], &ids[1], &ids[2]), (52, &json!(1), &json!(2), &json!(13)));
}

/// A browser omits port 80 in `Host` and `Origin`.
#[test]
fn the_usual_port_needs_no_name() {
    let session = Session::new(SessionOptions::new());
    let server = match Server::start(session.clone(), &ServeOptions::new().port(80)) {
        Ok(server) => server,
        Err(error) => {
            let is_taken = [std::io::ErrorKind::PermissionDenied, std::io::ErrorKind::AddrInUse];
            assert!(is_taken.contains(&error.kind()), "{error}");
            return;
        }
    };
    let token = server.url().split_once("#token=").unwrap().1.to_owned();
    let client = Client { server, session, token };
    let ask = |host: &str, origin: &str| {
        let request = format!(
            "GET /api/state HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nAuthorization: Bearer {}\r\n\r\n",
            client.token
        );
        client.raw(request.as_bytes()).status
    };
    assert_eq!(ask("127.0.0.1", "http://127.0.0.1"), 200);
    assert_eq!(ask("localhost:80", "http://localhost:80"), 200);
    assert_eq!(ask("evil.example", "http://127.0.0.1"), 403);
    assert_eq!(ask("127.0.0.1", "http://127.0.0.1:8080"), 403);
    assert_eq!(ask("127.0.0.1", "http://evil.example"), 403);
}

/// `--idle` ends an unused server. Requests without the token do not keep the server running. An open page
/// keeps it running.
#[test]
fn only_requests_for_data_keep_a_server_busy() {
    let client = client();
    let host = client.server.address();
    let since_start = client.server.idle_for();
    for path in ["/", "/serve.js", "/api/state", "/nothing"] {
        client.raw(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert!(client.server.idle_for() > since_start, "{path}");
    }
    let mut page = TcpStream::connect(host).unwrap();
    page.write_all(client.head("GET /api/events?since=0", "").as_bytes()).unwrap();
    let mut start = [0; 12];
    page.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    assert_eq!(client.server.idle_for(), std::time::Duration::ZERO);
    drop(page);
    // The server notices that the page has closed when it writes to it.
    client.session.close();
    while client.server.idle_for().is_zero() {
        std::thread::yield_now();
    }
}

#[cfg(unix)]
#[test]
fn the_file_that_leads_to_the_page_is_private_and_goes() {
    use std::os::unix::fs::PermissionsExt as _;
    let client = client();
    let folder = tempfile::tempdir().unwrap();
    let file = redirect_file(folder.path(), &client.server.url()).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&client.server.url()) && text.contains("no-referrer"));
    // The file keeps its name and its mode when it leads to another address. A browser that has opened the file reads
    // the whole old page.
    let mut open = std::fs::File::open(&file).unwrap();
    change_redirect(&file, &client.server.one_time_url()).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(&file).unwrap().contains("/#code="));
    let mut old = String::new();
    open.read_to_string(&mut old).unwrap();
    assert_eq!(old, text);
    let path = file.to_path_buf();
    // Something has removed the file.
    std::fs::remove_file(&path).unwrap();
    change_redirect(&file, &client.server.one_time_url()).unwrap();
    assert!(path.exists());
    drop(file);
    assert!(!path.exists());
}

#[test]
fn the_token_is_in_no_text_for_debugging() {
    let client = client();
    assert!(!format!("{:?}", client.server).contains(&client.token));
}

#[test]
fn a_code_gives_the_token_once() {
    let client = client();
    let host = client.server.address();
    let code = |url: String| url.split_once("/#code=").unwrap().1.to_owned();
    let exchange = |code: &str, host: &str| {
        client.raw(format!("GET /code/{code} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    };
    let first = code(client.server.one_time_url());
    assert!(first.len() == 64 && first != client.token);
    // Neither a wrong code nor a wrong host uses up the code.
    assert_eq!(exchange(&"0".repeat(64), &host.to_string()).status, 401);
    assert_eq!(exchange(&first, "evil.example").status, 403);
    assert_eq!(exchange(&first, &host.to_string()).json()["token"], client.token.as_str());
    assert_eq!(exchange(&first, &host.to_string()).status, 401, "once");
    let second = code(client.server.one_time_url());
    assert_ne!(first, second);
    assert_eq!(exchange(&second, &host.to_string()).json()["token"], client.token.as_str());
}
