//! A page in the browser for running processes, reports and heap snapshots, over HTTP on this machine.
//!
//! [`Server::start`] serves a [`Session`](crate::session::Session) at `127.0.0.1`, or at the place that [`Listen`]
//! selects. The server holds all state and the page shows it, so a reload or a second page loses no data.
//!
//! # Security
//!
//! The rules of [`http`](crate::http#security) reject other users of the machine, and pages of other sites. In addition:
//!
//! - A server with [`Listen::Remote`] is read-only, and measures without private names.
//! - The page itself contains neither data nor the token.
//! - The address that opens the browser contains a code that works once. The page exchanges the code for the token, so the
//!   browser's history contains only a used code. A tab passes the token only to tabs that it opens.
//! - A request names snapshots, reports and nodes by number, never by file.
//! - A program that cannot send a header gets a ticket: an address without the token that returns one file, once,
//!   within a minute.
//! - Computations have limits.
//! - A server with [`ServeOptions::read_only`] changes neither the processes nor the session.
//! - [`redirect_file`] keeps the token out of the list of processes: only this user can read the file.

mod answers;
mod api;
mod assets;
mod codes;
mod displays;
mod downloads;
mod measured_parts;
mod opening;
mod processes;
mod recordings;
mod redirect;
mod reports;
mod series;
mod served_list;
mod server;
mod snapshots;
mod stacks;
mod stream;
mod tickets;
mod types;

pub use crate::http::Listen;
pub use displays::Displays;
pub use opening::OpenedStacks;
pub use redirect::{change_redirect, redirect_file};
pub use server::{ServeOptions, Server};
pub use types::{CountKind, TypeTable, TypeTableRow, TypeTables};
