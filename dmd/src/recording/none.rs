//! Recordings on systems without support: only Linux has them. A program that asks for a recording gets a message.

use std::io;
use std::path::Path;

use crate::engine::ENGINE;
use crate::options::Run;
use crate::system::log;

/// Prints that recordings are not supported, if the options ask for one.
pub(crate) fn start() {
    let options = ENGINE.setup().options;
    if options.record.is_some() && options.run == Run::Normal {
        log::say_anyway(format_args!("no recording: --record works on Linux only"));
    }
}

/// Refuses a recording that a request asks for.
pub(crate) fn begin_requested(_path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing: there is no recording.
pub(crate) fn end_requested() {}

/// Does nothing: there is no recording.
pub(crate) fn start_writer() {}

/// Whether there is a recording. Always false.
pub(crate) fn is_on() -> bool {
    false
}

/// Does nothing: there is no recording.
pub(crate) fn process_ends() {}
