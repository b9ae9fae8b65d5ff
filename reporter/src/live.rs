//! Answering from outside, while the program runs: on a Unix socket, and to signals.
//!
//! A program turns it on with [`listen`] and [`listen_to_signals`], or without any code by the environment variable
//! `ABOUT_MEMORY` at its start. The value is a list of `listen`, `signals` (files go to the folder for temporary files)
//! and `signals=FOLDER`, separated by commas. A program that starts others calls [`ignore_environment`]. On systems other than Linux each function returns
//! [`ListenError::Unsupported`].
//!
//! # The socket
//!
//! Its name is `<pid>-<start>.sock`, where `start` is the process's start time in clock ticks, so that a reused process
//! number causes no confusion. It has mode 0600, lies in a folder of mode 0700 that belongs to the user (see
//! [`folder`]), and accepts only the user of the process, the user that started
//! it, if the process has become another one, and root. The program `about-memory` finds it there.
//!
//! A request is one line of JSON of at most [`MAX_REQUEST`] bytes, with `version` ([`VERSION`]) and
//! `request`; unknown keys are ignored. The answer ends with the connection. An error is one line,
//! `{"version":1,"error":"..."}`.
//!
//! | request | more keys | answer |
//! | --- | --- | --- |
//! | `hello` | | one line of JSON: [`HelloAnswer`] |
//! | `report` | `anonymize`, `minimize`, `resident_map`, `named` (false), `deadline_ms` (10,000) | `memory-report.json.gz` |
//! | `minimize` | | one line of JSON: [`MinimizeAnswer`] |
//! | `amounts` | | one line of JSON: [`AmountsAnswer`] |
//! | `dmd-dump` | | a dump of DMD, compressed; only if it records this process |
//! | `dmd-track` | `sample_bytes` (524,288; 0: every block) | one line of JSON: [`TrackAnswer`]; then, after a line of the peer, a dump as above; only if DMD waits for it |
//! | `dmd-track` | `record`: the absolute path of a file | one line of JSON: [`TrackAnswer`]; then, after a line of the peer, the same again; only if DMD waits for it |
//! | `dmd-log` | `per_million` (1,000,000), `length` (5000) | one line of JSON: [`TrackAnswer`]; then a line for each allocation until a line of the peer; only if DMD records every block or waits |
//! | `dmd-copy` | | one line of JSON: [`CopyAnswer`]; a line of the peer, or its end, ends the copy; only on Linux, and if DMD records |
//! | `collect` | | one line of JSON: [`MinimizeAnswer`]; only if the program has called [`answer_collections`] |
//! | any other of [`answer_requests`] | as it likes | as it likes |
//!
//! With `named` the reports call the process `NAME (pid N)`, not `Main Process (pid N)`.
//!
//! `dmd-track` lets DMD record from its answer on. DMD stops when the peer has its dump, or hangs up. Blocks that the
//! program allocated before are not in the dump, and their ends change nothing. With `record` the process writes every
//! allocation and end into the file (`dmd_format::recording`), which is complete when the second answer comes,
//! or the peer hangs up.
//!
//! `dmd-copy` makes a copy of the process, as a fork does: for about 30 ms a gigabyte the process stands still. The copy runs no code
//! of the program. Its memory stays as it is, so that the peer reads blocks, their contents and the engine's tables of one
//! moment from `/proc/PID/mem` (`dmd_format::tables`).
//!
//! `dmd-log` sends allocations as [`AllocationsLogEntry::to_json`](crate::watching::AllocationsLogEntry::to_json) writes them, ten
//! times a second, for so many of a million allocations. If the log was full, it has dropped its oldest entries, and a line
//! `{"overflowed":true}` comes before the next entries; `{"lost":N}` counts allocations that DMD could not note. When the
//! peer sends a line it gets the rest of the log.
//!
//! # Threads
//!
//! One thread listens; another answers each peer. At most eight peers get answers at the same time, others get an error.
//! A peer has five seconds to send its request and a minute to read the answer; tracking lasts as long as its peer likes. Collections run one after the other,
//! each reporter with a deadline. Reporters of [`register_local`](crate::register_local) run on their own threads,
//! when these call [`answer_here`](crate::answer_here). No signal handler of the program runs on the threads that listen
//! and answer.
//!
//! The child of a fork neither answers nor listens; it may call [`listen`] for itself.

mod collecting;
mod dmd_dump;
mod environment;
mod functions;
mod hearing;
mod json;
mod listening;
mod log;
mod protocol;
mod serve;
mod tracking;
mod triggers;
mod turns;
mod workers;

pub use collecting::answer_collections;
pub use environment::ignore_environment;
#[doc(hidden)]
pub use environment::is_asked_to_listen;
pub use functions::{AnswerGuard, answer_requests};
pub use listening::{ListenGuard, ListenOptions, folder, listen, listen_until_dropped, listen_with};
pub use protocol::{
    AmountsAnswer, CopyAnswer, HelloAnswer, MAX_REQUEST, MinimizeAnswer, TrackAnswer, VERSION,
};
pub use triggers::listen_to_signals;

pub use crate::platform::ListenError;

#[doc(hidden)]
pub use dmd_dump::dump as __dump;
pub(crate) use environment::start_up;
#[doc(hidden)]
pub use turns::collect_alone as __collect;
