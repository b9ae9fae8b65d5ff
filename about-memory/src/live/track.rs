//! Recording that is switched on and off in a running process.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::platform::Stream;

use super::ask;
use super::error::LiveError;
use super::save;
use super::sockets::sockets_of;

/// DMD records a process until this is dropped: [`track`], or [`record`] into a file.
#[derive(Debug)]
pub struct Tracking {
    answer: BufReader<Stream>,
    timeout: Duration,
}

/// How often [`Tracking::wait`] looks whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// Lets DMD record a process that waits for it: a sample with this mean distance in bytes, or with 0 every block.
/// Each answer of the process takes at most `timeout`.
///
/// # Errors
///
/// If the process does not listen, DMD does not wait in it, it refuses since DMD records it already, or it takes longer
/// than `timeout`.
pub fn track(pid: u32, sample_bytes: u64, timeout: Duration) -> Result<Tracking, LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    let begun = ask::track(&socket.path, sample_bytes, timeout);
    let answer = begun.map_err(|error| save::explained(&socket.path, save::TRACK_REQUEST, error, timeout))?;
    Ok(Tracking { answer, timeout })
}

/// Lets DMD record every allocation and end of a process that waits for it into a file, in the process. The file takes
/// the place of one with this name. Blocks from before are unknown in it. Each answer of the process takes at most
/// `timeout`.
///
/// # Errors
///
/// As for [`track`], and if the process cannot write the file, or the path is not UTF-8.
pub fn record(pid: u32, path: &Path, timeout: Duration) -> Result<Tracking, LiveError> {
    let failed = |error| LiveError::Write(path.to_owned(), error);
    let whole = std::path::absolute(path).map_err(failed)?;
    let text = whole.to_str().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    let begun = ask::record(&socket.path, text, timeout);
    let answer = begun.map_err(|error| save::explained(&socket.path, save::TRACK_REQUEST, error, timeout))?;
    Ok(Tracking { answer, timeout })
}

impl Tracking {
    /// Waits until the time has come, `stop` is true, or the process has ended.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or the process has ended.
    pub fn wait(&mut self, until: Option<Instant>, stop: &AtomicBool) -> Result<(), LiveError> {
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(now).min(LOOK));
            if left.is_zero() {
                break;
            }
            self.answer.get_mut().allow(now + left);
            match self.answer.fill_buf().map_err(|error| LiveError::of(error, left)) {
                Ok([]) => return Err(LiveError::NoAnswer),
                Ok(_) => break,
                Err(LiveError::TimedOut(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the recording, and saves a dump, compressed, of the blocks that the process has allocated since and that are
    /// alive. The dump replaces a file of this name, which only this user can read.
    ///
    /// # Errors
    ///
    /// If the process has ended or takes longer than the timeout; if the file cannot be written.
    pub fn save(mut self, path: &Path) -> Result<(), LiveError> {
        self.answer.get_mut().allow(Instant::now() + self.timeout);
        self.answer.get_mut().write_all(b"\n").map_err(|error| LiveError::of(error, self.timeout))?;
        let answer = ask::compressed(self.answer, self.timeout)?;
        save::receive(answer, path, self.timeout)
    }

    /// Ends the recording into a file, which is complete afterwards.
    ///
    /// # Errors
    ///
    /// If the process has ended or takes longer than the timeout.
    pub fn finish(mut self) -> Result<(), LiveError> {
        self.answer.get_mut().allow(Instant::now() + self.timeout);
        self.answer.get_mut().write_all(b"\n").map_err(|error| LiveError::of(error, self.timeout))?;
        ask::recorded(&mut self.answer, self.timeout)
    }
}
