//! Says on a terminal what goes on, if it takes longer than a second.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

/// Between two messages.
const PAUSE: Duration = Duration::from_millis(200);

/// A line on stderr that is written over and over, and wiped in the end.
#[derive(Debug)]
pub(crate) struct Progress {
    /// `None` if nobody looks.
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    /// Silent for the first second.
    pub(crate) fn new() -> Self {
        let next = io::stderr().is_terminal().then(|| Instant::now() + Duration::from_secs(1));
        Self { next, shown: false }
    }

    /// Shows a message, if it is time for one.
    #[allow(clippy::print_stderr, reason = "progress goes to stderr")]
    pub(crate) fn tick(&mut self, message: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.next.is_some_and(|next| next <= now) {
            eprint!("\r{}\x1b[K", message());
            self.next = Some(now + PAUSE);
            self.shown = true;
        }
    }
}

impl Drop for Progress {
    #[allow(clippy::print_stderr, reason = "progress goes to stderr")]
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
