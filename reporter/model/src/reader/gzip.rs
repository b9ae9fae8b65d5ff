//! Decompresses gzip streams.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read};

use flate2::bufread::GzDecoder;

use super::GZIP_MAGIC;
use crate::error::ReadError;

/// Reads the members of a gzip stream, one after the other. `flate2` has such a reader, but that reader cannot
/// distinguish a short piece of garbage from a truncated member.
pub(super) struct GzipMembers<R: Read> {
    /// The member that is being read; `None` at the end.
    current: Option<Box<GzDecoder<BufReader<R>>>>,
}

impl<R: Read> GzipMembers<R> {
    pub(super) fn new(reader: R) -> Self {
        let buffered = BufReader::with_capacity(1 << 16, reader);
        Self { current: Some(Box::new(GzDecoder::new(buffered))) }
    }

    pub(super) fn read(&mut self, into: &mut [u8], so_far: u64) -> Result<usize, ReadError> {
        while let Some(mut member) = self.current.take() {
            let read = member.read(into);
            if !matches!(read, Ok(0)) || into.is_empty() {
                self.current = Some(member);
                return read.map_err(|error| gzip_error(error, so_far));
            }
            let mut rest = member.into_inner();
            match rest.fill_buf().map_err(ReadError::Io)?.first() {
                None => break,
                Some(byte) if *byte == GZIP_MAGIC[0] => {
                    self.current = Some(Box::new(GzDecoder::new(rest)));
                }
                Some(_) => return Err(ReadError::GzipTrailing),
            }
        }
        Ok(0)
    }
}

/// Classifies an error of the decoder by its text, since only the text differs. An error of the reader itself carries
/// a system code.
fn gzip_error(error: io::Error, so_far: u64) -> ReadError {
    if error.raw_os_error().is_some() {
        return ReadError::Io(error);
    }
    let text = error.to_string();
    if error.kind() == ErrorKind::UnexpectedEof {
        ReadError::Truncated(so_far)
    } else if text.contains("checksum") {
        ReadError::Checksum
    } else if text.contains("invalid gzip header") && so_far > 0 {
        ReadError::GzipTrailing
    } else {
        ReadError::Gzip(error)
    }
}
