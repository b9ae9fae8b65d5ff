//! Recording sessions that a peer starts and ends in this process, if an engine of DMD waits for them.
//!
//! A session ends when its peer sends a line or hangs up: if the peer dies, recording stops. There is one session at a
//! time.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::engine_abi;
use crate::platform::Peer;

use super::dmd_dump;

/// The name of the request.
pub(super) const REQUEST: &str = "dmd-track";

/// The default mean distance of samples, in bytes.
pub(super) const SAMPLE_BYTES: u64 = 512 << 10;

/// A recording session. The engine records until this value is dropped.
pub(super) struct TrackingSession {
    /// Whether the engine sends the dump to the peer if the process ends before the session.
    has_peer: bool,
}

impl TrackingSession {
    /// Starts recording. `mean` is the mean distance of samples in bytes; 0 records every block.
    pub(super) fn start(mean: u64) -> io::Result<Self> {
        match engine_abi::start_tracking(mean) {
            Ok(()) => Ok(Self { has_peer: false }),
            Err(error) => Err(refused(error).unwrap_or_else(|_| io::Error::other(BUSY))),
        }
    }

    /// Starts recording every block, and all events into a file with this absolute path.
    pub(super) fn record(path: &str) -> io::Result<Self> {
        if !Path::new(path).is_absolute() {
            return Err(io::Error::other(format!("{path:?} is not an absolute path")));
        }
        match engine_abi::start_recording(&CString::new(path)?) {
            Ok(()) => Ok(Self { has_peer: false }),
            Err(error) => Err(refused(error).unwrap_or_else(|error| match error.kind() {
                io::ErrorKind::ExecutableFileBusy => {
                    io::Error::other(format!("{path}: another process records into this file"))
                }
                io::ErrorKind::ResourceBusy => io::Error::other(BUSY),
                _ => io::Error::other(format!("{path}: {error}")),
            })),
        }
    }

    /// Makes the engine send the dump to the peer if the process ends before the session does.
    pub(super) fn outlive_process(&mut self, peer: &Peer) {
        self.has_peer = engine_abi::set_session_peer(peer.descriptor());
    }

    /// Writes a dump of the blocks that were allocated since the start and are still live, and ends the session.
    /// `None` if the process is ending: then the engine sends the dump to the peer.
    pub(super) fn end(self) -> io::Result<Option<File>> {
        let dump = dmd_dump::temporary(engine_abi::dump);
        if self.has_peer && !engine_abi::set_session_peer(engine_abi::NO_PEER) {
            return Ok(None);
        }
        dump.map(Some)
    }
}

const BUSY: &str = "DMD already records this process (request a dump instead), or the program logs all its allocations, \
                    and a sample would miss some of them";

/// `Ok` contains a readable error if no engine records or waits. `Err` contains any other error, unchanged.
fn refused(error: io::Error) -> Result<io::Error, io::Error> {
    match error.kind() {
        io::ErrorKind::Unsupported => Ok(io::Error::other(
            "DMD is off in this process; start it with about-memory run --wait-for-track",
        )),
        _ => Err(error),
    }
}

impl Drop for TrackingSession {
    fn drop(&mut self) {
        engine_abi::stop_tracking();
    }
}
