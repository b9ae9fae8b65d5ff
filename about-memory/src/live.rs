//! Finds listening programs and sends them requests.
//!
//! A program listens if it calls [`memory_reporter::listen`] or was started with `ABOUT_MEMORY=listen`.
//! [`mod@memory_reporter::live`] documents the protocol.
//!
//! Requests to several processes run at the same time. Answers are not trusted. If a process sends garbage, hangs or
//! dies, a warning of the kind [`ProcessMissing`](memory_reporter::memory_report::WarningKind::ProcessMissing) in the
//! set names the process, and the answers of the other processes are complete.

mod ask;
mod collect;
mod copy;
#[cfg(feature = "program")]
mod ending;
mod error;
mod gather;
#[cfg(feature = "program")]
mod kept_copy;
mod listener;
mod log;
mod save;
mod sockets;
mod track;
mod watch;

pub use ask::{AskOptions, amounts, collect_garbage, minimize};
pub use collect::{collect, collect_all, collect_tree};
pub use copy::ForkedProcess;
#[cfg(feature = "program")]
pub use ending::{EndSignals, before_ending, wait_if_ending};
pub use error::LiveError;
pub use gather::{GatheredReports, gather};
#[cfg(feature = "program")]
pub use kept_copy::{CopyKeeper, KeptCopy, keep_copy};
pub use listener::{ListeningProcess, hello, is_running, list, list_with_amounts};
pub use log::{ReceivedLog, log};
pub use save::{save_dump, save_snapshot};
pub use track::{SessionEnd, TrackingSession, record, track};
pub use watch::{EntryChange, Watch, WatchRow};
