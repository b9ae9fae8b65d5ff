//! The keys of a terminal.
//!
//! A thread of their own reads them. When the terminal goes away, crossterm reads its end over and over and never returns
//! (`UnixInternalEventSource::try_read`), so the thread that draws looks for the end of the terminal itself.

use std::io::{self, IsTerminal as _};
use std::mem::ManuallyDrop;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

/// How often the waiting thread looks whether the terminal is there.
const LOOK: Duration = Duration::from_millis(100);

/// What a terminal has sent.
pub(super) enum KeyInput {
    Event(Event),
    /// Nothing yet.
    Nothing,
    /// The terminal has gone away.
    End,
}

/// Whether the terminal has gone away. Drawing fails then.
pub(super) fn is_at_end() -> bool {
    // A terminal that has hung up is not a terminal for the system.
    !io::stdin().is_terminal()
}

/// Gives the terminal back to the shell. If the terminal has gone away, this fails silently.
pub(super) fn give_back(terminal: DefaultTerminal) {
    // Dropping it would write about a failure to stderr. That may be the same terminal, and panics.
    let mut terminal = ManuallyDrop::new(terminal);
    let _ = terminal.show_cursor();
    let _ = ratatui::try_restore();
}

pub(super) struct TerminalKeys(Receiver<io::Result<Event>>);

impl TerminalKeys {
    /// Reads standard input, a terminal, from now on.
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
