//! Recording that a peer switches on and off in this process, if an engine of DMD waits for it.
//!
//! A session lasts as long as its peer is connected: a peer that dies leaves nothing switched on. There is one session
//! at a time.

use std::fs::File;
use std::io;

use crate::engine_abi;

use super::dmd_dump;

/// The name of the request.
pub(super) const REQUEST: &str = "dmd-track";

/// The mean distance of the samples in bytes if the request names none.
pub(super) const SAMPLE_BYTES: u64 = 512 << 10;

/// The engine records until this is dropped.
pub(super) struct Session(());

impl Session {
    /// Starts to record a sample with this mean distance in bytes, or with 0 every block.
    pub(super) fn start(mean: u64) -> io::Result<Self> {
        match engine_abi::start_tracking(mean) {
            Ok(()) => Ok(Self(())),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                Err(io::Error::other("DMD neither records nor waits in this process"))
            }
            Err(_) => Err(io::Error::other(
                "DMD records this process already (a dump shows what is alive), or the program has a log of all its \
                 allocations, which a sample would not fill",
            )),
        }
    }

    /// Writes a dump of what was allocated since and is alive, and ends the session.
    pub(super) fn end(self) -> io::Result<File> {
        dmd_dump::temporary(engine_abi::dump)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        engine_abi::stop_tracking();
    }
}
