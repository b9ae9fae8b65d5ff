//! The keys of a terminal.
//!
//! A separate thread reads the keys. After the terminal is closed, crossterm reads the end of its input in an endless
//! loop (`UnixInternalEventSource::try_read`). So the thread that draws checks for the end of the terminal itself.

use std::io::{self, IsTerminal as _};
use std::mem::ManuallyDrop;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

/// The waiting thread checks this often whether the terminal still exists.
const LOOK: Duration = Duration::from_millis(100);

/// Input from a terminal.
pub(super) enum KeyInput {
    Event(Event),
    /// No input within the time.
    Nothing,
    /// The terminal was closed.
    End,
}

/// Whether the terminal was closed. Drawing then fails.
pub(super) fn is_at_end() -> bool {
    // For the system, a closed terminal is no longer a terminal.
    !io::stdin().is_terminal()
}

/// Returns the terminal to the shell. Fails silently if the terminal was closed.
pub(super) fn give_back(terminal: DefaultTerminal) {
    // Does not drop the terminal: the drop reports a failure on stderr, and panics if stderr is the closed terminal.
    let mut terminal = ManuallyDrop::new(terminal);
    let _ = terminal.show_cursor();
    let _ = ratatui::try_restore();
}

pub(super) struct TerminalKeys(Receiver<io::Result<Event>>);

impl TerminalKeys {
    /// Starts to read standard input, which must be a terminal.
    pub(super) fn read() -> io::Result<Self> {
        let (to, from) = mpsc::channel();
        thread::Builder::new().name("keys".to_owned()).spawn(move || {
            // Sending fails once the receiver is dropped.
            while to.send(event::read()).is_ok() {}
        })?;
        Ok(Self(from))
    }

    /// Waits for the next event, at most this long.
    pub(super) fn next(&self, wait: Duration) -> io::Result<KeyInput> {
        let end = Instant::now() + wait;
        loop {
            if is_at_end() {
                return Ok(KeyInput::End);
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.0.recv_timeout(left.min(LOOK)) {
                Ok(event) => return event.map(KeyInput::Event),
                Err(RecvTimeoutError::Disconnected) => return Ok(KeyInput::End),
                Err(RecvTimeoutError::Timeout) if left <= LOOK => return Ok(KeyInput::Nothing),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
