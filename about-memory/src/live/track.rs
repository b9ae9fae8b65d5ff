//! Recording that is switched on and off in a running process.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::platform::{self, DeadlineStream};

use super::ask;
use super::error::LiveError;
use super::save;
use super::sockets::{SocketFile, sockets_of};

/// DMD records a process until this is dropped: [`track`], or [`record`] into a file.
#[derive(Debug)]
pub struct TrackingSession {
    answer: BufReader<DeadlineStream>,
    timeout: Duration,
    process: SocketFile,
    /// The file of the program.
    program: Option<PathBuf>,
}

/// How a session ended whose dump is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEnd {
    /// [`TrackingSession::save`] ended it.
    Asked,
    /// The process ended, and sent the dump before.
    ProcessEnded,
    /// The process replaced itself by another program, and sent the dump before.
    ProcessReplaced,
}

/// How often [`TrackingSession::wait`] looks whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// Lets DMD record a process that waits for it: a sample with this mean distance in bytes, or with 0 every block.
/// Each answer of the process takes at most `timeout`.
///
/// # Errors
///
/// If the process does not listen, DMD does not wait in it, it refuses since DMD records it already, or it takes longer
/// than `timeout`.
pub fn track(pid: u32, sample_bytes: u64, timeout: Duration) -> Result<TrackingSession, LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    let begun = ask::track(&socket.path, sample_bytes, timeout);
    let answer = begun.map_err(|error| save::explained(&socket.path, save::TRACK_REQUEST, error, timeout))?;
    Ok(TrackingSession::new(answer, timeout, socket))
}

/// Lets DMD record every allocation and end of a process that waits for it into a file, in the process. The file takes
/// the place of one with this name. Blocks from before are unknown in it. Each answer of the process takes at most
/// `timeout`.
///
/// # Errors
///
/// As for [`track`], and if the process cannot write the file, or the path is not UTF-8.
pub fn record(pid: u32, path: &Path, timeout: Duration) -> Result<TrackingSession, LiveError> {
    let failed = |error| LiveError::Write(path.to_owned(), error);
    let whole = std::path::absolute(path).map_err(failed)?;
    let text = whole.to_str().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    let begun = ask::record(&socket.path, text, timeout);
    let answer = begun.map_err(|error| save::explained(&socket.path, save::TRACK_REQUEST, error, timeout))?;
    Ok(TrackingSession::new(answer, timeout, socket))
}

impl TrackingSession {
    fn new(answer: BufReader<DeadlineStream>, timeout: Duration, process: SocketFile) -> Self {
        let program = platform::program_of(process.pid);
        Self { answer, timeout, process, program }
    }

    /// Why the process does not answer, if it has hung up. A process that ends closes its socket a moment before.
    fn explained(&self, error: LiveError) -> LiveError {
        const MOMENT: Duration = Duration::from_secs(1);
        if !matches!(error, LiveError::NoAnswer | LiveError::Io(_)) {
            return error;
        }
        let hung_up = Instant::now();
        loop {
            if self.has_ended() {
                return LiveError::Ended;
            }
            let now = platform::program_of(self.process.pid);
            if now.is_some() && now != self.program {
                return LiveError::Replaced;
            }
            if hung_up.elapsed() > MOMENT {
                return error;
            }
            thread::sleep(LOOK / 10);
        }
    }

    fn has_ended(&self) -> bool {
        platform::has_ended(self.process.pid, self.process.start)
    }

    /// Waits until the time has come, `stop` is true, or the process sends its dump because it ends or becomes another program.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or the process has ended or has replaced itself by another program and sends no dump. What it
    /// recorded into a file is there.
    pub fn wait(&mut self, until: Option<Instant>, stop: &AtomicBool) -> Result<(), LiveError> {
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(now).min(LOOK));
            if left.is_zero() {
                break;
            }
            self.answer.get_mut().allow(now + left);
            let filled = self.answer.fill_buf().map(<[u8]>::is_empty);
            match filled.map_err(|error| LiveError::from_transfer(error, left)) {
                Ok(true) => return Err(self.explained(LiveError::NoAnswer)),
                Ok(false) => break,
                // A child that the process forked keeps the connection open.
                Err(LiveError::TimedOut(_)) if self.has_ended() => return Err(LiveError::Ended),
                Err(LiveError::TimedOut(_)) => {}
                Err(error) => return Err(self.explained(error)),
            }
        }
        Ok(())
    }

    /// Ends the recording, and saves a dump, compressed, of the blocks that the process has allocated since and that are
    /// alive. The dump replaces a file of this name. Only this user can read it. A process that ends meanwhile has sent the
    /// dump by itself.
    ///
    /// # Errors
    ///
    /// If the process has ended without a dump or takes longer than the timeout; if the file cannot be written.
    pub fn save(mut self, path: &Path) -> Result<SessionEnd, LiveError> {
        let is_unasked = !self.answer.buffer().is_empty();
        // A process that has ended takes no request, but may have sent the dump.
        let asked = if is_unasked { Ok(()) } else { self.ask() };
        if let Err(error) = ask::compressed(&mut self.answer, self.timeout) {
            return Err(asked.err().unwrap_or_else(|| self.explained(error)));
        }
        save::receive(&mut self.answer, path, self.timeout)?;
        if !is_unasked && asked.is_ok() {
            return Ok(SessionEnd::Asked);
        }
        Ok(match self.explained(LiveError::NoAnswer) {
            LiveError::Replaced => SessionEnd::ProcessReplaced,
            _ => SessionEnd::ProcessEnded,
        })
    }

    /// Ends the recording into a file. The file is complete afterwards.
    ///
    /// # Errors
    ///
    /// If the process has ended or takes longer than the timeout.
    pub fn finish(mut self) -> Result<(), LiveError> {
        self.ask()?;
        let recorded = ask::recorded(&mut self.answer, self.timeout);
        recorded.map_err(|error| self.explained(error))
    }

    /// Asks the process to end the recording.
    fn ask(&mut self) -> Result<(), LiveError> {
        self.answer.get_mut().allow(Instant::now() + self.timeout);
        let asked = self.answer.get_mut().write_all(b"\n");
        asked.map_err(|error| self.explained(LiveError::from_transfer(error, self.timeout)))
    }
}
