//! The parts of a `GET` that a server passes to the endpoint.

use core::fmt;

/// A `GET` that a server of any kind passes to [`Endpoint::answer`](crate::Endpoint::answer).
#[derive(Clone, Copy)]
pub struct GetRequest<'a> {
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) is_wanted: Option<&'a dyn Fn() -> bool>,
}

impl<'a> GetRequest<'a> {
    /// Makes a request for a path, as in [`PATHS`](crate::PATHS). `path` must not contain the prefix under which the
    /// server mounts the endpoint. `query` is the part after `?`, or empty.
    pub fn new(path: &'a str, query: &'a str) -> Self {
        Self { path, query, accept: "", host: None, is_wanted: None }
    }

    /// Sets the header `Accept`. Default: empty.
    #[must_use]
    pub fn accept(self, accept: &'a str) -> Self {
        Self { accept, ..self }
    }

    /// Sets the header `Host`. The endpoint then checks it
    /// ([`EndpointOptions::host_name`](crate::EndpointOptions::host_name)). Default: the endpoint does not check
    /// the header, because the server has checked it.
    #[must_use]
    pub fn host(self, host: &'a str) -> Self {
        Self { host: Some(host), ..self }
    }

    /// Sets a function that returns whether the client still waits. If the client is gone, a difference ends, and other
    /// requests can run. Default: the client always waits.
    #[must_use]
    pub fn wanted(self, is_wanted: &'a dyn Fn() -> bool) -> Self {
        Self { is_wanted: Some(is_wanted), ..self }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.is_none_or(|is_wanted| is_wanted())
    }
}

impl fmt::Debug for GetRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetRequest")
            .field("path", &self.path)
            .field("query", &self.query)
            .field("accept", &self.accept)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}
