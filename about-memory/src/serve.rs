//! A page in the browser for running processes, reports and heap snapshots, over HTTP on this machine.
//!
//! [`Server::start`] serves a [`Session`](crate::session::Session) at `127.0.0.1`, or at the place that [`Listen`]
//! selects. The server holds all state and the page shows it, so a reload or a second page loses no data.
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
//! - [`Listen::Remote`] binds an address that other machines reach. `Host` must then be one of its names. The server is
//!   read-only, and measures without private names. Requests still need the token.
//! - A request from another origin has a foreign `Origin` or `Sec-Fetch-Site`, and is refused.
//! - Each request to `/api` needs the token, 32 random bytes, as `Authorization: Bearer`. The page gets the token in
//!   the fragment of its address. Browsers never send the fragment. Cookies are not used, because they ignore ports.
//! - The page itself contains neither data nor the token. Its policy forbids inline code, other sources, and HTML from
//!   text.
//! - A request names snapshots, reports and nodes by number, never by file.
//! - A program that cannot send a header gets a ticket: an address without the token that returns one file, once,
//!   within a minute.
//! - Requests, bodies, connections and computations have limits. If a new connection exceeds the limit, the server
//!   closes the oldest connection that has not shown the token.
//! - A server with [`ServeOptions::read_only`] changes neither the processes nor the session.
//! - [`redirect_file`] keeps the token out of the list of processes: only this user can read the file.
//!
//! The server implements the part of HTTP/1.1 (RFC 9112) that browsers need: one request per connection.

mod answers;
mod api;
mod assets;
mod connections;
mod displays;
mod downloads;
mod guard;
mod listening;
mod opening;
mod processes;
mod recordings;
mod redirect;
mod reports;
mod request;
mod response;
mod series;
mod served_list;
mod server;
mod snapshots;
mod stacks;
mod stream;
mod tickets;
mod token;
mod types;

pub use displays::Displays;
pub use listening::Listen;
pub use opening::OpenedStacks;
pub use redirect::redirect_file;
pub use server::{ServeOptions, Server};
pub use types::{CountKind, TypeTable, TypeTableRow, TypeTables};
