//! DMD's messages on stderr: whole lines after `DMD[pid] `, each in one write.
//!
//! Messages stop if descriptor 2 no longer refers to the same file as at the start: a program may close it and open its
//! own file under this number.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::system::errno::keeping_errno;
use crate::system::standard_error;

/// Device and inode of stderr at the start.
static STDERR: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether the options ask for the lines of [`mention`].
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Whether stderr was a terminal at the start.
static TERMINAL: AtomicBool = AtomicBool::new(false);

/// With `quiet`, switches off all lines except lines of [`say_anyway`]. With `verbose`, switches on lines of
/// [`mention`].
pub(crate) fn set(quiet: bool, verbose: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    VERBOSE.store(verbose, Ordering::Relaxed);
}

/// Stores the identity of stderr, and prints that DMD is enabled. `variable` is `$DMD`, if the options come from there.
pub(crate) fn start(variable: Option<&[u8]>) {
    for (place, value) in STDERR.iter().zip(standard_error::identity().unwrap_or_default()) {
        place.store(value, Ordering::Relaxed);
    }
    if !QUIET.load(Ordering::Relaxed) && keeping_errno(standard_error::is_terminal) {
        TERMINAL.store(true, Ordering::Relaxed);
    }
    if let Some(variable) = variable {
        mention(format_args!("$DMD = '{}'", variable.escape_ascii()));
    }
    mention(format_args!("DMD is enabled"));
}

/// Writes one line about DMD's work. Programs read the stderr of their child processes, so DMD writes such lines only
/// to a terminal, or if the options request them.
pub(crate) fn mention(line: fmt::Arguments<'_>) {
    if VERBOSE.load(Ordering::Relaxed) || TERMINAL.load(Ordering::Relaxed) {
        say(line);
    }
}

/// Writes one line about a problem that no dump contains, or a line that the user requested.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    if !QUIET.load(Ordering::Relaxed) {
        say_failure(line);
    }
}

/// Writes one line even in quiet mode: the reason why a dump is missing. Like [`say`], it writes nothing if the program
/// has put another file in the place of stderr.
pub(crate) fn say_failure(line: fmt::Arguments<'_>) {
    keeping_errno(|| {
        let known = [STDERR[0].load(Ordering::Relaxed), STDERR[1].load(Ordering::Relaxed)];
        if standard_error::identity() == Some(known) {
            say_anyway(line);
        }
    });
}

/// Writes one line of plain text.
pub fn say_text(line: &str) {
    say(format_args!("{line}"));
}

/// Writes one line even in quiet mode: the reason why the process cannot continue, the reason why its dump or recording
/// is missing or incomplete, or the result of a self-test.
pub(crate) fn say_anyway(line: fmt::Arguments<'_>) {
    let mut text = LogLine { bytes: [0; 512], len: 0 };
    // A line that is too long is cut.
    let _ = write!(text, "DMD[{}] ", std::process::id());
    let _ = text.write_fmt(line);
    text.bytes[text.len] = b'\n';
    standard_error::write(&text.bytes[..=text.len]);
}

struct LogLine {
    bytes: [u8; 512],
    /// The number of bytes in use, less than the length of `bytes`.
    len: usize,
}

impl Write for LogLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.len;
        let text = &text.as_bytes()[..text.len().min(room)];
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
        Ok(())
    }
}
