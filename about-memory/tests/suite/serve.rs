//! Tests of the server with a raw client: security, requests, answers, events.

mod answers;
#[cfg(target_os = "linux")]
mod ending;
mod files;
#[cfg(target_os = "linux")]
mod places;
mod security;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use about_memory::serve::{ServeOptions, Server};
use about_memory::session::{Session, SessionOptions};
use serde_json::Value;

struct Response {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Returns the body of a chunked response; `None` if the last chunk is missing.
fn unchunked(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|part| part == b"\r\n")?;
        let length = usize::from_str_radix(core::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        let chunk = body.get(end + 2..end + 2 + length)?;
        assert_eq!(body.get(end + 2 + length..end + 4 + length)?, b"\r\n");
        if length == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(chunk);
        body = &body[end + 4 + length..];
    }
}

struct Client {
    server: Server,
    session: Session,
    token: String,
}

impl Client {
    fn new(options: &ServeOptions) -> Self {
        let session = Session::new(SessionOptions::new());
        let server = Server::start(session.clone(), options).unwrap();
        let token = server.url().split_once("#token=").unwrap().1.to_owned();
        Self { server, session, token }
    }

    /// Sends bytes. Returns everything that the server sends.
    fn raw(&self, request: &[u8]) -> Response {
        let mut stream = TcpStream::connect(self.server.address()).unwrap();
        // The server may refuse the request before it has read everything.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = bytes.get(end + 4..).unwrap_or_default();
        let is_chunked = head.contains("\r\nTransfer-Encoding: chunked");
        let body = if is_chunked { unchunked(body).expect("the body has an end") } else { body.to_vec() };
        Response { status, head, body }
    }

    /// Returns the head of a request as a browser sends it for the page.
    fn head(&self, line: &str, more: &str) -> String {
        let host = self.server.address();
        format!("{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n{more}\r\n", self.token)
    }

    fn get(&self, path: &str) -> Response {
        self.raw(self.head(&format!("GET {path}"), "").as_bytes())
    }

    fn send(&self, method: &str, path: &str, media_type: &str, body: &[u8]) -> Response {
        let more = format!("Content-Type: {media_type}\r\nContent-Length: {}\r\n", body.len());
        let head = self.head(&format!("{method} {path}"), &more);
        self.raw(&[head.as_bytes(), body].concat())
    }

    fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, "application/json", body.to_string().as_bytes())
    }
}
