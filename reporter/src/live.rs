//! Answering from outside, while the program runs: on a Unix socket, and to signals.
//!
//! Off unless asked for: by [`listen`] and [`listen_to_signals`], or without any code by the
//! environment variable `ABOUT_MEMORY` at the program's start. Its value is a list of `listen`,
//! `signals` (files go to the folder for temporary files) and `signals=FOLDER`, separated by commas.
//! On systems other than Linux all of it gives [`ListenError::Unsupported`](crate::ListenError::Unsupported).
//!
//! # The socket
//!
//! It is called `<pid>-<start>.sock`, where `start` is the process's start time in clock ticks, so that
//! a number used again is no mistake. It has mode 0600, lies in a folder of mode 0700 that belongs to
//! the user (see [`folder`]), and who connects must be the same user. The program `about-memory` finds
//! it there.
//!
//! A request is one line of JSON of at most [`MAX_REQUEST`] bytes, with `version` ([`VERSION`]) and
//! `request`; unknown keys are ignored. The answer ends where the connection does. Where something is
//! wrong it is one line, `{"version":1,"error":"..."}`.
//!
//! | request | more keys | answer |
//! | --- | --- | --- |
//! | `hello` | | one line of JSON: [`Hello`] |
//! | `report` | `anonymize`, `minimize`, `resident_map`, `named` (false), `deadline_ms` (10,000) | `memory-report.json.gz` |
//! | `minimize` | | one line of JSON: [`Minimized`] |
//! | `dmd-dump` | | a dump of DMD, compressed; only if it records this process |
//! | any other of [`answer_requests`] | as it likes | as it likes |
//!
//! With `named` the process is called `NAME (pid N)` in its reports rather than `Main Process (pid N)`.
//!
//! # Threads
//!
//! One thread listens; another answers each peer, at most eight at a time, and others are told to come
//! later. A peer has five seconds to ask and a minute to read. Collections run one after the other, each
//! reporter with a deadline; [`register_local`](crate::register_local) reporters have no part in them.
//! No signal handler of the program's runs on these threads.
//!
//! The child of a fork neither answers nor listens; it may call [`listen`] for itself.

mod dmd_dump;
mod environment;
mod functions;
mod listening;
mod protocol;
mod serve;
mod triggers;
mod workers;

pub use functions::{Answering, answer_requests};
pub use listening::{ListenOptions, Listening, folder, listen, listen_with};
pub use protocol::{Hello, MAX_REQUEST, Minimized, VERSION};
pub use triggers::listen_to_signals;

pub(crate) use environment::start_up;
pub(crate) use listening::at_exit;
pub(crate) use triggers::Trigger;
