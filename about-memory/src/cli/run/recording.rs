//! The lines of `run` about recordings, printed after the program has ended.

use std::io::{self, Write as _};
use std::path::PathBuf;

use dmd_analyze::program::bytes;

use super::super::say;
use super::size;

/// Prints the names of the recordings that the program wrote. Unless `quiet`, also prints the next commands for the
/// largest recording.
pub(super) fn print(written: &[PathBuf], quiet: bool) {
    for path in written {
        say(&format!("recorded {} ({})", path.display(), bytes(size(path).into())));
    }
    let Some(largest) = written.iter().max_by_key(|path| size(path)) else {
        return say("no recording: the program could not write one");
    };
    if !quiet {
        let path = largest.display();
        let text = format!(
            "\nNext: about-memory leaks {path}    the blocks that were never freed\n\
             \x20     about-memory history {path}  the heap over time\n"
        );
        // If stderr is closed, there is no reader.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}
