//! Shows progress on a terminal, if the work takes longer than a second.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

/// The time between two messages.
const PAUSE: Duration = Duration::from_millis(200);

/// A line on stderr. Each message replaces the message before, and the line is cleared at the end.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The time of the next message; `None` if stderr is not a terminal.
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    /// Makes a line that shows no message in the first second.
    pub(crate) fn new() -> Self {
        let next = io::stderr().is_terminal().then(|| Instant::now() + Duration::from_secs(1));
        Self { next, shown: false }
    }

    /// Shows a message if it is time for the next one.
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
