//! Answers requests from other processes while the program runs: on a Unix socket, and to signals.
//!
//! A program enables this with [`listen`] and [`listen_to_signals`]. Without any code, the environment variable
//! `ABOUT_MEMORY` enables it at the start. Its value is a list, separated by commas, of `listen`, `signals` (files go
//! to the folder for temporary files) and `signals=FOLDER`. A program that starts other programs calls
//! [`ignore_environment`]. On systems other than Linux, the functions that listen return [`ListenError::Unsupported`].
//!
//! # The socket
//!
//! The name of the socket is `<pid>-<start>.sock`. `start` is the process's start time in clock ticks, so that the
//! socket of an older process with the same number has another name. The socket has mode 0600, and its folder (see
//! [`folder`]) has mode 0700 and belongs to the user. The socket accepts root, the process's user, and, if the process
//! has changed its user since it started to listen, also the earlier user. The program `about-memory` looks for
//! sockets in that folder.
//!
//! A request is one line of JSON of at most [`MAX_REQUEST`] bytes, with `version` ([`VERSION`]) and
//! `request`; unknown keys are ignored. After the answer, the process closes the connection. An error is one line,
//! `{"version":1,"error":"..."}`.
//!
//! | request | more keys | answer |
//! | --- | --- | --- |
//! | `hello` | | one line of JSON: [`HelloAnswer`] |
//! | `report` | `anonymize`, `minimize`, `resident_map`, `named` (false), `deadline_ms` (10,000) | `memory-report.json.gz` |
//! | `minimize` | | one line of JSON: [`MinimizeAnswer`] |
//! | `amounts` | | one line of JSON: [`AmountsAnswer`] |
//! | `dmd-dump` | | a compressed dump of DMD; only if DMD records this process |
//! | `dmd-track` | `sample_bytes` (524,288; 0: every block) | one line of JSON: [`TrackAnswer`]; after a line from the peer, a compressed dump; only if DMD waits for this request |
//! | `dmd-track` | `record`: the absolute path of a file | one line of JSON: [`TrackAnswer`]; after a line from the peer, the same answer again; only if DMD waits for this request |
//! | `dmd-log` | `per_million` (1,000,000), `length` (5000) | one line of JSON: [`TrackAnswer`]; then a line for each allocation until the peer sends a line; only if DMD records every block or waits |
//! | `dmd-copy` | | one line of JSON: [`CopyAnswer`]; the copy ends when the peer sends a line or hangs up; only on Linux, and if DMD records |
//! | `dmd-copy` | `keep`: true | one line of JSON: [`CopyAnswer`] with the number 0; the reader that DMD's option `--copy-to` names gets the copy |
//! | `collect` | | one line of JSON: [`MinimizeAnswer`]; only if the program has called [`answer_collections`] |
//! | a request of [`answer_requests`] | defined by the program | defined by the program |
//!
//! With `named` the reports call the process `NAME (pid N)`, not `Main Process (pid N)`.
//!
//! When the first answer to `dmd-track` arrives, DMD records. DMD stops when it has written the dump, or when the peer
//! hangs up. The dump does not contain blocks that the program allocated earlier, and ignores their frees. With
//! `record`, the process writes every allocation and free to the file (`dmd_format::recording`). The file is complete
//! when the second answer arrives, or soon after the peer hangs up.
//!
//! `dmd-copy` makes a copy of the process, like a fork; this stops the process for about 30 ms for each gigabyte. The
//! copy runs no code of the program. Its memory does not change, so that the peer can read blocks, their contents and
//! the engine's tables of one moment from `/proc/PID/mem` (`dmd_format::tables`).
//!
//! `dmd-log` sends allocations ten times a second, in the format of
//! [`AllocationsLogEntry::to_json`](crate::watching::AllocationsLogEntry::to_json). It logs `per_million` of each
//! million allocations. If the log was full, it has dropped its oldest entries, and a line `{"overflowed":true}`
//! precedes the next entries. `{"lost":N}` counts the allocations and frees that DMD lost. After a line from the peer,
//! `dmd-log` sends the remaining entries.
//!
//! # Threads
//!
//! One thread listens, and each peer gets its answer from a separate thread. At most eight peers get answers at the
//! same time; other peers get an error. A peer has five seconds to send its request and a minute to read the answer.
//! Tracking lasts until the peer ends it. Collections run one after the other, and each reporter has a deadline.
//! Reporters of [`register_local`](crate::register_local) run on their own threads, when these threads call
//! [`answer_here`](crate::answer_here). Signal handlers of the program do not run on the threads that listen and
//! answer.
//!
//! When a process ends, it first sends the dumps that peers have requested. It waits at most half a minute for this.
//!
//! The child process of a fork neither answers nor listens. It may call [`listen`] for itself.

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
