//! The log of a running process's allocations, as they happen.

use std::io::{BufRead as _, BufReader, Write as _};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::platform::DeadlineStream;

use super::ask;
use super::error::LiveError;
use super::save;
use super::sockets::sockets_of;

/// The longest line of a log, in bytes: an allocation with all frames of its stack.
const MAX_LINE: usize = 1 << 22;

/// [`ReceivedLog::lines`] returns at most this many lines at once.
const AT_ONCE: usize = 10_000;

/// How often a reader checks whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// After the first line, further lines that arrive within this time are returned together with it.
const TOGETHER: Duration = Duration::from_millis(5);

/// A log of allocations. Dropping it ends the log in the process.
#[derive(Debug)]
pub struct ReceivedLog {
    answer: BufReader<DeadlineStream>,
    timeout: Duration,
    /// The start of the next line.
    line: Vec<u8>,
    /// The time by which the process must have sent the remaining lines. `None` until the end was requested.
    ends: Option<Instant>,
}

/// Opens a log of the allocations of a process that DMD records, or in which DMD waits for requests. The log contains
/// `per_million` of a million allocations, from now on. The process keeps at most `length` unsent allocations, and
/// drops the oldest. Each answer takes at most `timeout`.
///
/// # Errors
///
/// Returns an error if the process does not listen, DMD neither records it nor waits for requests in it, the process
/// refuses, or it takes longer than `timeout`.
pub fn log(pid: u32, per_million: u64, length: u64, timeout: Duration) -> Result<ReceivedLog, LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    let begun = ask::log(&socket.path, per_million, length, timeout);
    let answer = begun.map_err(|error| save::explained(&socket.path, save::LOG_REQUEST, error, timeout))?;
    Ok(ReceivedLog { answer, timeout, line: Vec::new(), ends: None })
}

impl ReceivedLog {
    /// Waits for the next lines: JSON objects without their newlines, as [`mod@memory_reporter::live`] describes them,
    /// the oldest first. `None` at the end of the log. At the time `until`, or when `stop` is true, the process sends
    /// the remaining lines and the log ends.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection breaks, the process refuses to continue, or it does not send the remaining
    /// lines in time.
    pub fn lines(
        &mut self,
        until: Option<Instant>,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<String>>, LiveError> {
        loop {
            let now = Instant::now();
            let is_over = stop.load(Ordering::Relaxed) || until.is_some_and(|until| now >= until);
            match self.ends {
                None if is_over => {
                    self.ends = Some(now + self.timeout);
                    self.answer.get_mut().allow(now + self.timeout);
                    match self.answer.get_mut().write_all(b"\n") {
                        // The process has ended. The lines that it sent can still be read.
                        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
                        sent => sent.map_err(|error| LiveError::from_transfer(error, self.timeout))?,
                    }
                }
                Some(ends) if now >= ends => return Err(LiveError::TimedOut(self.timeout)),
                _ => {}
            }
            let left = until.filter(|_| self.ends.is_none()).map_or(LOOK, |until| (until - now).min(LOOK));
            let mut lines = Vec::new();
            let mut wait = left;
            while lines.len() < AT_ONCE {
                match self.next_line(wait)? {
                    LogStep::Line(line) => lines.push(line),
                    LogStep::NotYet => break,
                    LogStep::End if lines.is_empty() => return Ok(None),
                    LogStep::End => break,
                }
                wait = TOGETHER;
            }
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
    }

    fn next_line(&mut self, wait: Duration) -> Result<LogStep, LiveError> {
        self.answer.get_mut().allow(Instant::now() + wait);
        loop {
            let bytes = match self.answer.fill_buf().map_err(|error| LiveError::from_transfer(error, wait)) {
                Ok([]) => return Ok(LogStep::End),
                Ok(bytes) => bytes,
                Err(LiveError::TimedOut(_)) => return Ok(LogStep::NotYet),
                Err(error) => return Err(error),
            };
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            let taken = newline.unwrap_or(bytes.len());
            self.line.extend_from_slice(&bytes[..taken]);
            self.answer.consume(taken + usize::from(newline.is_some()));
            if self.line.len() > MAX_LINE {
                return Err(LiveError::Garbage);
            }
            if newline.is_some() {
                let line = String::from_utf8(mem::take(&mut self.line)).map_err(|_| LiveError::Garbage)?;
                return match ask::refusal(line.as_bytes()) {
                    Some(refused) => Err(refused),
                    None => Ok(LogStep::Line(line)),
                };
            }
        }
    }
}

enum LogStep {
    Line(String),
    NotYet,
    End,
}
