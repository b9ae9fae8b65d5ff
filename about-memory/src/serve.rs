//! A page in the browser for running processes, reports and heap snapshots, over HTTP on this machine.
//!
//! [`Server::start`] serves a [`Session`](crate::session::Session) at `127.0.0.1`, or where [`Listen`] says. The server holds all state and the page
//! shows it, so a reload or a second page loses nothing.
//!
//! # Security
//!
//! Other users of the machine, and pages of other sites in the same browser, can connect to a port of the loopback
//! address. These rules keep them out:
//!
//! - By default the server binds 127.0.0.1, and accepts the names `127.0.0.1`, `localhost` and `[::1]` with its port in the
//!   header `Host`, exactly once. A page that rebinds its own name to 127.0.0.1 has another host.
//! - [`Listen::Unix`] binds a socket with the mode 0600, to which no other user can connect; there `Host` may have any port,
//!   since ssh forwards one.
//! - [`Listen::Remote`] binds an address that other machines reach. `Host` must then be one of its names, and the server is
//!   read-only and measures without private names. It needs the token all the same.
//! - A request of another origin has a foreign `Origin` or `Sec-Fetch-Site`, and is refused.
//! - Each request to `/api` needs the token, 32 random bytes, as `Authorization: Bearer`. The page gets it in the fragment
//!   of its address, which a browser never sends. There are no cookies, since cookies ignore ports.
//! - The page itself has neither data nor token. Its policy allows no inline code, no other source and no HTML from text.
//! - A request names snapshots, reports and nodes by number, and never a file.
//! - A program that cannot send a header gets a ticket: an address without the token that gives one file, once, within a minute.
//! - Requests, bodies, connections and computations have limits. Connections that have not shown the token make room for new
//!   ones, the oldest first.
//! - A server with [`ServeOptions::read_only`] changes nothing, neither in processes nor in the session.
//! - [`redirect_file`] keeps the token out of the list of processes: only this user can read the file.
//!
//! The server speaks as much of HTTP/1.1 (RFC 9112) as browsers need: one request for each connection.

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
