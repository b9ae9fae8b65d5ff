//! A server of pages for browsers on this machine. [`serve`](crate::serve) and `memory-fleet serve` use it.
//!
//! [`HttpServer`] accepts connections. A [`ConnectionHandler`] reads the [`HttpRequest`], and calls
//! [`RequestGuard::check`] before it answers.
//!
//! # Security
//!
//! Other users of the machine, and pages of other sites in the same browser, can connect to a port of the loopback
//! address. These rules reject them:
//!
//! - By default, the server binds 127.0.0.1. The header `Host` must occur exactly once, with the server's port and one
//!   of the names `127.0.0.1`, `localhost` and `[::1]`. A page that rebinds its own name to 127.0.0.1 sends its own
//!   name in `Host`.
//! - [`Listen::Unix`] binds a socket with the mode 0600, so no other user can connect. There `Host` may contain any
//!   port, because ssh forwards a port.
//! - [`Listen::Remote`] binds an address that other machines reach. `Host` must then be one of its names. Requests
//!   still need the token.
//! - A request from another origin has a foreign `Origin` or `Sec-Fetch-Site`, and is refused.
//! - Each request to `/api` needs the token, 32 random bytes, as `Authorization: Bearer`. The page gets the token in
//!   the fragment of its address. Browsers never send the fragment. Cookies are not used, because they ignore ports.
//! - [`serve`](crate::serve) also gives the token for a one-time code (`GET /code/CODE`). Only the private file that
//!   opens the browser contains the code, and each use replaces it.
//! - A page keeps the token in the session storage of its tab. It never sends the token to other tabs of its origin:
//!   such a tab may show the page of another server that had the same port before.
//! - The policy of each response forbids inline code, other sources, and HTML from text.
//! - Requests, bodies and connections have limits. If a new connection exceeds the limit, the server closes the oldest
//!   connection that has not shown the token.
//!
//! The server implements the part of HTTP/1.1 (RFC 9112) that browsers need: one request per connection.

mod accepting;
mod connections;
mod guard;
mod listening;
mod request;
mod response;
mod token;

pub use accepting::{ConnectionHandler, HttpServer};
pub use connections::ConnectionPlace;
pub use guard::RequestGuard;
pub use listening::Listen;
pub use request::{HttpMethod, HttpRequest};
#[cfg(feature = "serve")]
pub(crate) use response::{BodyLength, head};
pub use response::{HttpRefusal, HttpResponse, ResponseBody, refuse};
pub use token::AccessToken;
