//! Starts and stops recordings in a running process.

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

/// A recording by DMD, started with [`track`], or with [`record`] into a file. Dropping the session ends the recording.
#[derive(Debug)]
pub struct TrackingSession {
    answer: BufReader<DeadlineStream>,
    timeout: Duration,
    process: SocketFile,
    /// The file of the program that the process ran when the session started.
    program: Option<PathBuf>,
}

/// The reason why a session with a dump ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEnd {
    /// [`TrackingSession::save`] ended the session.
    Asked,
    /// The process ended, and sent the dump before its end.
    ProcessEnded,
    /// The process replaced itself by another program, and sent the dump before the replacement.
    ProcessReplaced,
}

/// How often [`TrackingSession::wait`] checks whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// Lets DMD record a process in which DMD waits for this request (`about-memory run --wait-for-track`). DMD records a
/// sample of one block per `sample_bytes` allocated bytes on average, or every block if `sample_bytes` is 0. Each
/// answer of the process takes at most `timeout`.
///
/// # Errors
///
/// Returns an error if the process does not listen, DMD does not wait for requests in the process or already records
/// the process, or an answer takes longer than `timeout`.
pub fn track(pid: u32, sample_bytes: u64, timeout: Duration) -> Result<TrackingSession, LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    let begun = ask::track(&socket.path, sample_bytes, timeout);
    let answer = begun.map_err(|error| save::explained(&socket.path, save::TRACK_REQUEST, error, timeout))?;
    Ok(TrackingSession::new(answer, timeout, socket))
}

/// Lets DMD record every allocation and every free into a file. DMD in the process must wait for this request. The
/// process writes the file, and replaces an existing file. The file does not contain blocks that were allocated before
/// the recording. Each answer of the process takes at most `timeout`.
///
/// # Errors
///
/// Returns the errors of [`track`], and an error if the process cannot write the file or the path is not UTF-8.
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

    /// Replaces an error of a closed connection by the reason: the process has ended, or has become another program.
    /// Waits for this up to a second, because an ending process closes its socket a moment before its end.
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

    /// Waits until the time `until`, until `stop` is true, or until the process sends its dump because it ends or
    /// becomes another program.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection breaks, or the process ends or becomes another program without a dump. A file
    /// of [`record`] then contains all events until that moment.
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
                // A forked child of the process can keep the connection open.
                Err(LiveError::TimedOut(_)) if self.has_ended() => return Err(LiveError::Ended),
                Err(LiveError::TimedOut(_)) => {}
                Err(error) => return Err(self.explained(error)),
            }
        }
        Ok(())
    }

    /// Ends the recording, and saves a compressed dump of the live blocks that were allocated during the recording.
    /// Replaces an existing file. Only this user can read the file. If the process has ended, saves the dump that the
    /// process sent at its end.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has ended without a dump or takes longer than the timeout, or if the file cannot
    /// be written.
    pub fn save(mut self, path: &Path) -> Result<SessionEnd, LiveError> {
        let is_unasked = !self.answer.buffer().is_empty();
        // An ended process accepts no request, but may have sent the dump.
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
    /// Returns an error if the process has ended or takes longer than the timeout.
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
