//! Responses. Each response has the headers that keep other pages out.

use std::io::{self, Write};
use std::net::TcpStream;

/// Forbids inline code, other sources, HTML from text, and frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRefusal {
    /// The HTTP status; 0 if the client has closed the connection.
    pub status: u16,
    /// The reason for the user.
    pub message: String,
}

impl HttpRefusal {
    /// Creates a refusal.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// Creates the refusal for a client that has closed the connection.
    pub fn gone() -> Self {
        Self::new(0, "")
    }
}

/// A function that writes a body of unknown length.
type BodyWriter = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

/// The body of a response.
pub enum ResponseBody {
    /// Bytes of this answer.
    Bytes(Vec<u8>),
    /// A part of the page.
    Static(&'static [u8]),
    /// A file with its name, which the browser saves.
    Download(String, BodyWriter),
}

/// A response with the status 200.
#[derive(Debug)]
pub struct HttpResponse {
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// The body.
    pub body: ResponseBody,
}

impl HttpResponse {
    /// Returns JSON.
    pub fn json(value: &serde_json::Value) -> Self {
        Self { media_type: "application/json", body: ResponseBody::Bytes(value.to_string().into_bytes()) }
    }

    /// Returns bytes.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self { media_type: "application/octet-stream", body: ResponseBody::Bytes(bytes) }
    }

    /// Returns a file, which the browser saves. `writer` runs while the file is sent.
    pub fn download(
        name: impl Into<String>,
        writer: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let body = ResponseBody::Download(name.into(), Box::new(writer));
        Self { media_type: "application/octet-stream", body }
    }

    /// Sends the response.
    ///
    /// # Errors
    ///
    /// Returns an error if the client has closed the connection.
    pub fn write(self, stream: &mut TcpStream) -> io::Result<()> {
        match self.body {
            ResponseBody::Bytes(bytes) => {
                head(stream, 200, self.media_type, BodyLength::Known(bytes.len()), None)?;
                stream.write_all(&bytes)
            }
            ResponseBody::Static(bytes) => {
                head(stream, 200, self.media_type, BodyLength::Known(bytes.len()), None)?;
                stream.write_all(bytes)
            }
            ResponseBody::Download(name, writer) => {
                head(stream, 200, self.media_type, BodyLength::Chunks, Some(&name))?;
                let mut out = io::BufWriter::with_capacity(1 << 16, ChunkWriter(stream));
                let written = writer(&mut out).and_then(|()| out.flush());
                let (ChunkWriter(stream), _) = out.into_parts();
                written?;
                // Only a complete body gets an end. A browser reports a download without an end as failed.
                stream.write_all(b"0\r\n\r\n")
            }
        }
    }
}

/// Writes each part as a chunk (RFC 9112, section 7.1).
struct ChunkWriter<'a>(&'a mut TcpStream);

impl Write for ChunkWriter<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        // An empty part is skipped, because an empty chunk would end the body.
        if !part.is_empty() {
            write!(self.0, "{:x}\r\n", part.len())?;
            self.0.write_all(part)?;
            self.0.write_all(b"\r\n")?;
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl core::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ResponseBody")
    }
}

/// How a client finds the end of a body.
pub(crate) enum BodyLength {
    Known(usize),
    /// The body ends with an empty chunk.
    Chunks,
    /// The body ends when the connection closes.
    #[cfg(feature = "serve")]
    Connection,
}

/// Sends a refusal.
///
/// # Errors
///
/// Returns an error if the client has closed the connection.
pub fn refuse(refusal: &HttpRefusal, stream: &mut TcpStream) -> io::Result<()> {
    if refusal.status == 0 {
        return Ok(());
    }
    let body = serde_json::json!({ "error": refusal.message }).to_string();
    head(stream, refusal.status, "application/json", BodyLength::Known(body.len()), None)?;
    stream.write_all(body.as_bytes())
}

/// Writes the head of a response.
pub(crate) fn head(
    stream: &mut TcpStream,
    status: u16,
    media_type: &str,
    length: BodyLength,
    download: Option<&str>,
) -> io::Result<()> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    };
    let length = match length {
        BodyLength::Known(length) => format!("Content-Length: {length}\r\n"),
        BodyLength::Chunks => "Transfer-Encoding: chunked\r\n".to_owned(),
        #[cfg(feature = "serve")]
        BodyLength::Connection => String::new(),
    };
    // The names of downloads are made of letters, digits and `-._`.
    let download = download.map(|name| format!("Content-Disposition: attachment; filename=\"{name}\"\r\n"));
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {media_type}\r\n{length}{}\
         Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        download.unwrap_or_default()
    );
    stream.write_all(head.as_bytes())
}
