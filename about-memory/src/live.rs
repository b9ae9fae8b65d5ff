//! Programs while they run: finding those that listen, and asking them.
//!
//! A program listens if it calls [`memory_reporter::listen`] or was started with `ABOUT_MEMORY=listen`.
//! See [`mod@memory_reporter::live`] for what goes over the socket.
//!
//! All processes are asked at once. What comes back is not trusted: a process that sends garbage, hangs
//! or dies is named as missing, by a warning of the kind
//! [`ProcessMissing`](memory_reporter::WarningKind::ProcessMissing) in the set, and costs nothing else.

mod ask;
mod collect;
mod ending;
mod error;
mod gather;
mod snapshot;
mod sockets;
mod watch;

pub use ask::{AskOptions, minimize};
pub use collect::{collect, collect_all, collect_tree};
pub use ending::before_ending;
pub use error::LiveError;
pub use gather::{Gathered, gather};
pub use snapshot::save_snapshot;
pub use sockets::{Listener, list};
pub use watch::{Change, Watch, WatchRow};
