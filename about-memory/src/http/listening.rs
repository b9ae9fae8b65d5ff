//! The place where a server listens, and the names under which browsers reach it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use crate::platform::{self, PrivateSocket};

/// The names under which a browser on this machine reaches the server.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
/// The usual port of HTTP.
const HTTP: u16 = 80;
/// The default port on the browser's machine, if ssh forwards a port to a socket.
const FORWARDED: u16 = 8123;

/// The place where a server listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listen {
    /// At 127.0.0.1.
    #[default]
    Loopback,
    /// At a Unix socket that only this user can connect to, for `ssh -L PORT:PATH HOST` on another machine. Linux only.
    Unix(PathBuf),
    /// At an address that other machines reach. The server is then read-only, and measures without private names.
    /// Requests and answers are not encrypted.
    Remote {
        /// The address of an interface, or the address for all interfaces.
        address: IpAddr,
        /// The names under which browsers reach the server. A request with another name is refused.
        host_names: Vec<String>,
    },
}

impl Listen {
    /// Whether other machines reach the server.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote { .. })
    }

    /// Opens the listening socket.
    pub(super) fn open(&self, port: u16) -> io::Result<ServerSocket> {
        let tcp = |address| TcpListener::bind(SocketAddr::new(address, port)).map(ServerSocket::Tcp);
        match self {
            Self::Loopback => tcp(Ipv4Addr::LOCALHOST.into()),
            Self::Unix(path) => PrivateSocket::bind(path).map(ServerSocket::Unix),
            Self::Remote { address, host_names } => {
                if let Some(name) = host_names.iter().find(|name| !is_name(name)) {
                    return Err(invalid(format!(
                        "{name:?} is not a host name; give it without a port, such as build.example"
                    )));
                }
                if host_names.is_empty() {
                    return Err(invalid(
                        "no host name is given; give the name that browsers use for this machine".to_owned(),
                    ));
                }
                tcp(*address)
            }
        }
    }

    /// Returns the names under which browsers reach a server that listens here.
    pub(super) fn names(&self, address: SocketAddr) -> HostNames {
        let port = address.port();
        match self {
            Self::Loopback => HostNames { hosts: LOOPBACK.map(str::to_owned).to_vec(), port: Some(port) },
            Self::Unix(_) => HostNames { hosts: LOOPBACK.map(str::to_owned).to_vec(), port: None },
            Self::Remote { host_names, .. } => HostNames { hosts: host_names.clone(), port: Some(port) },
        }
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// Whether a text is a name or an address in the form of a `Host` header, without a port. A wildcard address is
/// rejected. `_` is accepted because names of containers contain it.
fn is_name(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok_and(|address| !address.is_unspecified()),
        None => {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            !text.is_empty() && text.bytes().all(is_plain) && !text.ends_with('.') && text != "0.0.0.0"
        }
    }
}

#[derive(Debug)]
pub(super) enum ServerSocket {
    Tcp(TcpListener),
    Unix(PrivateSocket),
}

impl ServerSocket {
    pub(super) fn accept(&self) -> io::Result<TcpStream> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| stream),
            Self::Unix(socket) => socket.accept(),
        }
    }

    /// Returns the address for browsers: the listener's address, or the browser's end of a forwarded port.
    pub(super) fn address(&self, port: u16) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Unix(_) => {
                let port = if port == 0 { FORWARDED } else { port };
                Ok((Ipv4Addr::LOCALHOST, port).into())
            }
        }
    }

    /// Ends one pending `accept`.
    pub(super) fn wake(&self) {
        match self {
            Self::Tcp(listener) => platform::end_accept(listener),
            Self::Unix(socket) => socket.wake(),
        }
    }
}

/// The names under which browsers reach a server.
#[derive(Debug)]
pub(super) struct HostNames {
    hosts: Vec<String>,
    /// The port. `None` if a browser may use any port, because ssh forwards a port of another machine.
    port: Option<u16>,
}

impl HostNames {
    /// Whether a header's value is one of these names.
    pub(super) fn has(&self, host: &[u8]) -> bool {
        self.hosts.iter().any(|own| {
            let own = own.as_bytes();
            let Some((name, rest)) = host.split_at_checked(own.len()) else { return false };
            name.eq_ignore_ascii_case(own)
                && match self.port {
                    Some(port) if rest.is_empty() => port == HTTP, // Browsers omit the usual port.
                    Some(port) => rest == format!(":{port}").as_bytes(),
                    None => rest.is_empty() || is_port(rest),
                }
        })
    }

    /// Returns the first name, in the form of an address.
    pub(super) fn first(&self) -> &str {
        &self.hosts[0]
    }
}

/// Whether a text is a colon and a port number, as browsers write it.
fn is_port(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b":").and_then(|digits| core::str::from_utf8(digits).ok());
    digits.is_some_and(|digits| digits.parse::<u16>().is_ok_and(|port| port.to_string() == digits))
}
