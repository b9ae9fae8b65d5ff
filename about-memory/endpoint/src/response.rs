//! The answers of an endpoint.

use std::time::Duration;

/// An answer to a `GET`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointResponse {
    /// The status: 200, 400 (a bad query), 403 (an unknown `Host`), 404 (an unknown path, or no snapshot), 429 (another
    /// request is running), 500 (a part of the program panicked), or 503 (no DMD, too slow, or too large).
    pub status: u16,
    /// The names of headers in lower case, and their values.
    pub headers: Vec<(&'static str, String)>,
    /// The body. For an error, one line of text.
    pub body: Vec<u8>,
}

impl EndpointResponse {
    /// The value of a header. The name must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }

    pub(crate) fn with_body(body: ResponseBody) -> Self {
        let mut response = Self::with(200, body.content_type, body.bytes);
        if let Some(name) = body.file_name {
            response.headers.push(("content-disposition", format!("attachment; filename=\"{name}\"")));
        }
        response
    }

    pub(crate) fn refused(refusal: RefusedRequest, is_pprof: bool) -> Self {
        let mut line = refusal.message;
        line.push('\n');
        let mut response = Self::with(refusal.status, "text/plain; charset=utf-8", line.into_bytes());
        if let Some(wait) = refusal.retry_after {
            // The seconds are rounded up, because a client that repeats its request too early is refused again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers.push(("retry-after", seconds.max(1).to_string()));
        }
        if is_pprof {
            // With this header, `go tool pprof` shows the text of an error.
            response.headers.push(("x-go-pprof", "1".to_owned()));
        }
        response
    }

    fn with(status: u16, content_type: &str, body: Vec<u8>) -> Self {
        let headers = vec![
            ("content-type", content_type.to_owned()),
            ("cache-control", "no-store".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
        ];
        Self { status, headers, body }
    }
}

/// The body of a successful answer.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    pub(crate) content_type: &'static str,
    /// The file name that a browser uses to save the body.
    pub(crate) file_name: Option<&'static str>,
    pub(crate) bytes: Vec<u8>,
}

/// The reason why a request is refused.
#[derive(Debug)]
pub(crate) struct RefusedRequest {
    pub(crate) status: u16,
    /// The message, in one line.
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
}

impl RefusedRequest {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}
