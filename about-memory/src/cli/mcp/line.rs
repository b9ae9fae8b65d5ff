//! Messages: one JSON value on each line. The reader skips long lines without storing them. The writer is the only code
//! that writes to standard output while the server runs.

use std::io::{self, BufRead, Write};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// A request has at most this many bytes. The longest useful request is far shorter.
const MAX_LINE: usize = 1 << 20;

/// A line of the input.
pub(super) enum InputLine {
    Message(Value),
    /// The line is not a message, for this reason.
    Unreadable(String),
}

/// Reads the next line. `None` at the end of the input.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<InputLine>> {
    loop {
        let Some((line, length)) = read_bytes(input)? else { return Ok(None) };
        if length > MAX_LINE {
            let reason = format!("the line has {length} bytes; at most {MAX_LINE} are allowed");
            return Ok(Some(InputLine::Unreadable(reason)));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let parsed = match std::str::from_utf8(&line) {
            Ok(text) => serde_json::from_str(text).map_err(|error| format!("not JSON: {error}")),
            Err(error) => Err(format!("not UTF-8 after byte {}", error.valid_up_to())),
        };
        return Ok(Some(parsed.map_or_else(InputLine::Unreadable, InputLine::Message)));
    }
}

/// Returns the next line without its end, and the line's length. Of a line that is too long, only the length is known.
fn read_bytes(input: &mut impl BufRead) -> io::Result<Option<(Vec<u8>, usize)>> {
    let mut line = Vec::new();
    let mut length = 0;
    loop {
        let part = match input.fill_buf() {
            Ok(part) => part,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if part.is_empty() {
            return Ok((length > 0).then_some((line, length)));
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = &part[..end.unwrap_or(part.len())];
        length += taken.len();
        if length <= MAX_LINE {
            line.extend_from_slice(taken);
        } else {
            line = Vec::new();
        }
        let used = taken.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some((line, length)));
        }
    }
}

/// Standard output, for whole messages.
pub(super) struct MessageWriter(Mutex<io::Stdout>);

impl MessageWriter {
    pub(super) fn new() -> Self {
        Self(Mutex::new(io::stdout()))
    }

    /// Writes a message on a line of its own.
    pub(super) fn write(&self, message: &Value) -> io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(line.as_bytes()).and_then(|()| out.flush())
    }
}
