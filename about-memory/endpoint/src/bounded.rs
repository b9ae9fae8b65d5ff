//! A body that stops growing at a limit.

use std::io::{self, Write};

use crate::response::RefusedRequest;

/// Bytes in memory, up to a limit.
#[derive(Debug)]
pub(crate) struct BoundedBody {
    bytes: Vec<u8>,
    most: usize,
    is_over: bool,
}

impl BoundedBody {
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, is_over: false }
    }

    /// Returns the bytes that `write` writes. An error message starts with `what`.
    pub(crate) fn fill<E: std::fmt::Display>(
        mut self,
        what: &str,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<Vec<u8>, RefusedRequest> {
        let written = write(&mut self);
        match written {
            // This case is checked first, because `write` may ignore the error of the stream.
            _ if self.is_over => Err(RefusedRequest::new(
                503,
                format!("{what} has more than {} bytes, the limit of the endpoint (max_bytes)", self.most),
            )),
            Err(error) => Err(RefusedRequest::new(
                503,
                format!("{what} cannot be made: {}", one_line(&error.to_string())),
            )),
            Ok(()) => Ok(self.bytes),
        }
    }
}

impl Write for BoundedBody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.bytes.len() {
            self.is_over = true;
            return Err(io::Error::other("the body has reached its limit"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the text of an error fit into a line.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
