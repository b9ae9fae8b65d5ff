//! HTTP requests, with limits on everything that a client sends.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::response::HttpRefusal;

/// A request line with all headers has at most this many bytes.
const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// The head of a request must arrive within this time.
const TIME_FOR_HEAD: Duration = Duration::from_secs(10);
/// The longest pause while a body arrives.
const TIME_FOR_BODY: Duration = Duration::from_secs(10);

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpMethod {
    /// Reads.
    Get,
    /// Sends JSON.
    Post,
    /// Sends a file.
    Put,
    /// Removes.
    Delete,
}

/// A request without its body.
#[derive(Debug)]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
    /// The path, without the query.
    pub path: String,
    /// The query, not decoded.
    pub query: String,
    headers: Vec<(String, Vec<u8>)>,
    /// The length of the body.
    pub length: u64,
    /// The start of the body, received with the head.
    rest: Vec<u8>,
}

impl HttpRequest {
    /// Reads the head of a request.
    ///
    /// # Errors
    ///
    /// Returns the refusal for a head that is late, too long or malformed.
    pub fn read(stream: &mut TcpStream) -> Result<Self, HttpRefusal> {
        let until = Instant::now() + TIME_FOR_HEAD;
        let mut bytes = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(HttpRefusal::new(408, "the request took too long"));
            }
            stream.set_read_timeout(Some(left)).map_err(|_| HttpRefusal::gone())?;
            let mut part = [0; 4096];
            let read = match stream.read(&mut part) {
                Ok(0) => return Err(HttpRefusal::gone()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(HttpRefusal::new(408, "the request took too long")),
            };
            bytes.extend_from_slice(&part[..read]);
            if let Some(request) = Self::parse(&bytes)? {
                return Ok(request);
            }
            if bytes.len() > MAX_HEAD {
                return Err(HttpRefusal::new(431, "the headers are too long"));
            }
        }
    }

    /// Parses the head of a request; `None` if the head is not complete.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, HttpRefusal> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        let end = match head.parse(bytes) {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(HttpRefusal::new(431, "there are too many headers"));
            }
            Err(_) => return Err(HttpRefusal::new(400, "this is not an HTTP request")),
        };
        if end > MAX_HEAD {
            return Err(HttpRefusal::new(431, "the headers are too long"));
        }
        // The server sends an answer of unknown length in chunks, and HTTP/1.0 does not support chunks.
        if head.version != Some(1) {
            return Err(HttpRefusal::new(505, "the version must be HTTP/1.1"));
        }
        let method = match head.method {
            Some("GET") => HttpMethod::Get,
            Some("POST") => HttpMethod::Post,
            Some("PUT") => HttpMethod::Put,
            Some("DELETE") => HttpMethod::Delete,
            _ => return Err(HttpRefusal::new(405, "the method must be GET, POST, PUT or DELETE")),
        };
        let target = head.path.unwrap_or_default();
        if !target.starts_with('/') {
            return Err(HttpRefusal::new(400, "the target must be a path"));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers =
            head.headers.iter().map(|header| (header.name.to_ascii_lowercase(), header.value.to_vec()));
        let mut request = Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            headers: headers.collect(),
            length: 0,
            rest: bytes[end..].to_vec(),
        };
        if request.header("transfer-encoding")?.is_some() {
            return Err(HttpRefusal::new(411, "a body must have a length"));
        }
        if let Some(length) = request.header("content-length")? {
            let digits = core::str::from_utf8(length)
                .ok()
                .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
            let length = digits.and_then(|text| text.parse().ok());
            request.length = length.ok_or(HttpRefusal::new(400, "the length of the body is not a number"))?;
        }
        Ok(Some(request))
    }

    /// Returns the value of a header; `None` if the header is missing. A repeated header is an error, because headers
    /// decide about access.
    ///
    /// # Errors
    ///
    /// Returns the refusal for a repeated header.
    pub fn header(&self, name: &str) -> Result<Option<&[u8]>, HttpRefusal> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let first = values.next();
        match values.next() {
            Some(_) => Err(HttpRefusal::new(400, "a header is repeated")),
            None => Ok(first.map(|(_, value)| value.as_slice())),
        }
    }

    /// Returns the value of a parameter of the query, without decoding. Numbers and plain words need no decoding.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns the decoded text of a parameter, at most 200 characters.
    pub fn text(&self, name: &str) -> Option<String> {
        let raw = self.parameter(name)?.as_bytes();
        let mut bytes = Vec::new();
        let mut at = 0;
        while let Some(byte) = raw.get(at) {
            let hex = raw.get(at + 1..at + 3).and_then(|hex| core::str::from_utf8(hex).ok());
            match hex.filter(|_| *byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                Some(coded) => {
                    bytes.push(coded);
                    at += 3;
                }
                None => {
                    bytes.push(*byte);
                    at += 1;
                }
            }
        }
        Some(String::from_utf8_lossy(&bytes).chars().filter(|c| !c.is_control()).take(200).collect())
    }

    /// Returns a reader of the body while it arrives. A body of more than `most` bytes is refused.
    ///
    /// # Errors
    ///
    /// Returns the refusal.
    pub fn body<'a>(
        &'a self,
        stream: &'a mut TcpStream,
        most: u64,
    ) -> Result<impl Read + use<'a>, HttpRefusal> {
        if self.length > most {
            return Err(HttpRefusal::new(413, "the body is too long"));
        }
        stream.set_read_timeout(Some(TIME_FOR_BODY)).map_err(|_| HttpRefusal::gone())?;
        Ok(ExactReader { from: self.rest.as_slice().chain(stream), left: self.length })
    }
}

/// Reads exactly the announced number of bytes. Fewer bytes are an error.
struct ExactReader<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for ExactReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.from.read(&mut into[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}
