//! Decides which requests are accepted. The checks are in the order of the documentation of [`http`](super).

use std::io;
use std::net::SocketAddr;

use super::listening::{HostNames, Listen};
use super::request::{HttpMethod, HttpRequest};
use super::response::HttpRefusal;
use super::token::AccessToken;

/// Decides which requests a server answers.
#[derive(Debug)]
pub struct RequestGuard {
    names: HostNames,
    port: u16,
    token: AccessToken,
    read_only: bool,
}

impl RequestGuard {
    /// Accepts requests to a server at `address`, with a new token.
    pub(super) fn new(listen: &Listen, address: SocketAddr, read_only: bool) -> io::Result<Self> {
        let (names, port) = (listen.names(address), address.port());
        Ok(Self { names, port, token: AccessToken::new()?, read_only })
    }

    /// Returns the address of the page, with the token.
    pub fn url(&self) -> String {
        format!("http://{}:{}/#token={}", self.names.first(), self.port, self.token.as_str())
    }

    /// Whether the server changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Checks a request that has passed the checks of size and method.
    ///
    /// # Errors
    ///
    /// Returns the reason why the server does not answer the request.
    pub fn check(&self, request: &HttpRequest) -> Result<(), HttpRefusal> {
        let host = match request.header("host")? {
            Some(host) if self.names.has(host) => host,
            _ => {
                let reason = "the host is not this server: open the address that `serve` printed";
                return Err(HttpRefusal::new(403, reason));
            }
        };
        if let Some(origin) = request.header("origin")? {
            let own = origin.strip_prefix(b"http://".as_slice());
            if !own.is_some_and(|own| own.eq_ignore_ascii_case(host)) {
                return Err(HttpRefusal::new(403, "the request comes from another origin"));
            }
        }
        let is_api = request.path.starts_with("/api/");
        if let Some(site) = request.header("sec-fetch-site")?
            && !matches!(site, b"same-origin" | b"none")
            && (is_api || !is_navigation(request)?)
        {
            return Err(HttpRefusal::new(403, "the request comes from another site"));
        }
        if !is_api {
            return match request.method {
                HttpMethod::Get => Ok(()),
                _ => Err(HttpRefusal::new(405, "the method must be GET")),
            };
        }
        let bearer = request.header("authorization")?.and_then(|value| value.strip_prefix(b"Bearer "));
        if !bearer.is_some_and(|token| self.token.is(token)) {
            return Err(HttpRefusal::new(
                401,
                "the token is missing or wrong: open the address that `serve` printed",
            ));
        }
        let media_type = request.header("content-type")?;
        let is_good = match request.method {
            HttpMethod::Post => media_type == Some(b"application/json"),
            HttpMethod::Put => media_type == Some(b"application/octet-stream"),
            HttpMethod::Get | HttpMethod::Delete => request.length == 0,
        };
        if !is_good {
            return Err(HttpRefusal::new(415, "the body has the wrong type"));
        }
        Ok(())
    }

    /// Refuses a request that changes something, if the server is read-only.
    ///
    /// # Errors
    ///
    /// Returns the refusal.
    pub fn change(&self) -> Result<(), HttpRefusal> {
        match self.read_only {
            true => Err(HttpRefusal::new(403, "the server is read-only")),
            false => Ok(()),
        }
    }
}

/// Whether a browser opens the page in a tab, for example by the link in a file. The page contains neither data nor the
/// token, so any page may open it. Only the page itself may load its parts.
fn is_navigation(request: &HttpRequest) -> Result<bool, HttpRefusal> {
    let is = |name, value: &[u8]| Ok(request.header(name)? == Some(value));
    Ok(is("sec-fetch-mode", b"navigate")? && is("sec-fetch-dest", b"document")?)
}
