//! A request over HTTP/1.1. The answer is untrusted: its size is bounded, and it cannot redirect.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The maximum number of bytes and of headers before the body.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 64;

/// How the end of a body is known.
enum BodyEnd {
    Length(usize),
    Chunks,
    Close,
}

/// Returns the body of a successful answer.
pub(super) async fn get(authority: &str, path: &str, max: usize) -> Result<Vec<u8>, String> {
    let mut stream = TcpStream::connect(authority).await.map_err(|error| error.to_string())?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nAccept: application/gzip\r\nConnection: close\r\nUser-Agent: \
         memory-fleet\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut read = Vec::new();
    let (start, end) = loop {
        if more(&mut stream, &mut read).await? == 0 {
            return Err("the connection ended before the answer".to_owned());
        }
        if let Some(head) = head(&read)? {
            break head;
        }
        if read.len() > MAX_HEAD {
            return Err(format!("the answer's headers exceed {MAX_HEAD} bytes"));
        }
    };
    read.drain(..start);
    let too_large = || format!("the answer exceeds {max} bytes");
    match end {
        BodyEnd::Length(length) => {
            if length > max {
                return Err(too_large());
            }
            while read.len() < length {
                if more(&mut stream, &mut read).await? == 0 {
                    return Err(format!("the answer ended after {} of {length} bytes", read.len()));
                }
            }
            read.truncate(length);
            Ok(read)
        }
        // The server closes the connection, as requested.
        BodyEnd::Chunks | BodyEnd::Close => {
            while more(&mut stream, &mut read).await? > 0 {
                if read.len() > max {
                    return Err(too_large());
                }
            }
            match end {
                BodyEnd::Chunks => chunks(&read),
                _ => Ok(read),
            }
        }
    }
}

async fn more(stream: &mut TcpStream, read: &mut Vec<u8>) -> Result<usize, String> {
    read.reserve(16 << 10);
    stream.read_buf(read).await.map_err(|error| error.to_string())
}

/// Parses the status and the headers; `None` if they are not complete.
fn head(read: &[u8]) -> Result<Option<(usize, BodyEnd)>, String> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(read).map_err(|error| format!("the answer is not HTTP: {error}"))?;
    let httparse::Status::Complete(start) = parsed else { return Ok(None) };
    let header = |name: &str| {
        let header = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        header.and_then(|header| core::str::from_utf8(header.value).ok()).map(str::trim)
    };
    let status = response.code.unwrap_or_default();
    if status != 200 {
        let again =
            header("retry-after").map(|seconds| format!(", retry after {seconds} s")).unwrap_or_default();
        return Err(format!("status {status}{again}"));
    }
    let end = match (header("transfer-encoding"), header("content-length")) {
        (Some(encoding), _) if encoding.eq_ignore_ascii_case("chunked") => BodyEnd::Chunks,
        (Some(encoding), _) => return Err(format!("the transfer encoding {encoding:?} is unknown")),
        (None, Some(length)) => {
            BodyEnd::Length(length.parse().map_err(|_| format!("the length {length:?} is not a number"))?)
        }
        (None, None) => BodyEnd::Close,
    };
    Ok(Some((start, end)))
}

/// Joins the chunks of a body.
fn chunks(read: &[u8]) -> Result<Vec<u8>, String> {
    let cut = || "the answer ended inside of a chunk".to_owned();
    let (mut body, mut rest) = (Vec::new(), read);
    loop {
        let parsed =
            httparse::parse_chunk_size(rest).map_err(|_| "the size of a chunk is not a number".to_owned())?;
        let httparse::Status::Complete((start, size)) = parsed else { return Err(cut()) };
        if size == 0 {
            return Ok(body);
        }
        let size = usize::try_from(size).map_err(|_| "a chunk is too large".to_owned())?;
        let end = start.checked_add(size).ok_or("a chunk is too large")?;
        let chunk = rest.get(start..end).ok_or_else(cut)?;
        body.extend_from_slice(chunk);
        match rest.get(end..end + 2) {
            None => return Err(cut()),
            Some(b"\r\n") => rest = &rest[end + 2..],
            Some(_) => return Err("a chunk has another length than it says".to_owned()),
        }
    }
}
