//! Recording that a peer switches on and off in this process, if an engine of DMD waits for it.
//!
//! A session lasts as long as its peer is connected: a peer that dies leaves nothing switched on. There is one session
//! at a time.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::engine_abi;
use crate::platform::Peer;

use super::dmd_dump;

/// The name of the request.
pub(super) const REQUEST: &str = "dmd-track";

/// The mean distance of the samples in bytes if the request names none.
pub(super) const SAMPLE_BYTES: u64 = 512 << 10;

/// The engine records until this is dropped.
pub(super) struct TrackingSession {
    /// Whether the engine sends the dump to the peer if the process ends first.
    has_peer: bool,
}

impl TrackingSession {
    /// Starts to record a sample with this mean distance in bytes, or with 0 every block.
    pub(super) fn start(mean: u64) -> io::Result<Self> {
        match engine_abi::start_tracking(mean) {
            Ok(()) => Ok(Self { has_peer: false }),
            Err(error) => Err(refused(error).unwrap_or_else(|_| io::Error::other(BUSY))),
        }
    }

    /// Starts to record every block, and all events into a file with this absolute path.
    pub(super) fn record(path: &str) -> io::Result<Self> {
        if !Path::new(path).is_absolute() {
            return Err(io::Error::other(format!("{path:?} is not an absolute path")));
        }
        match engine_abi::start_recording(&CString::new(path)?) {
            Ok(()) => Ok(Self { has_peer: false }),
            Err(error) => Err(refused(error).unwrap_or_else(|error| match error.kind() {
                io::ErrorKind::ExecutableFileBusy => {
                    io::Error::other(format!("{path}: another process records into it"))
                }
                io::ErrorKind::ResourceBusy => io::Error::other(BUSY),
                _ => io::Error::other(format!("{path}: {error}")),
            })),
        }
    }

    /// If the process ends before the session does, the peer gets the dump all the same.
    pub(super) fn outlive_process(&mut self, peer: &Peer) {
        self.has_peer = engine_abi::set_session_peer(peer.descriptor());
    }

    /// Writes a dump of what was allocated since and is alive, and ends the session. `None` if the process ends at the same time:
    /// then it sends its dump to the peer itself.
    pub(super) fn end(self) -> io::Result<Option<File>> {
        let dump = dmd_dump::temporary(engine_abi::dump);
        if self.has_peer && !engine_abi::set_session_peer(engine_abi::NO_PEER) {
            return Ok(None);
        }
        dump.map(Some)
    }
}

const BUSY: &str = "DMD records this process already (a dump shows what is alive), or the program has a log of all its \
                    allocations, which a sample would not fill";

/// The error if no engine can be switched on; `Err` for any other reason.
fn refused(error: io::Error) -> Result<io::Error, io::Error> {
    match error.kind() {
        io::ErrorKind::Unsupported => Ok(io::Error::other("DMD neither records nor waits in this process")),
        _ => Err(error),
    }
}

impl Drop for TrackingSession {
    fn drop(&mut self) {
        engine_abi::stop_tracking();
    }
}
