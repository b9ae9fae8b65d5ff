//! Bytes of a file, decompressed if they start as gzip does.

use std::io::{self, BufReader, Chain, Cursor, ErrorKind, Read};

use flate2::read::MultiGzDecoder;

use crate::error::ReadError;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

type Bytes<R> = Chain<Cursor<Vec<u8>>, R>;

pub(super) enum Source<R: Read> {
    Plain(Bytes<R>),
    Gzip(Box<MultiGzDecoder<BufReader<Bytes<R>>>>),
}

impl<R: Read> Source<R> {
    pub(super) fn open(mut reader: R) -> Result<Self, ReadError> {
        let mut magic = Vec::with_capacity(GZIP_MAGIC.len());
        reader.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut magic).map_err(ReadError::Io)?;
        if magic.is_empty() {
            return Err(ReadError::Empty);
        }
        let gzip = magic == GZIP_MAGIC;
        let bytes = Cursor::new(magic).chain(reader);
        Ok(if gzip {
            let buffered = BufReader::with_capacity(1 << 16, bytes);
            Self::Gzip(Box::new(MultiGzDecoder::new(buffered)))
        } else {
            Self::Plain(bytes)
        })
    }

    /// Reads on; 0 at the end. `so_far` is how many bytes came before, for the message.
    pub(super) fn read(&mut self, into: &mut [u8], so_far: u64) -> Result<usize, ReadError> {
        loop {
            let read = match self {
                Self::Plain(bytes) => bytes.read(into).map_err(ReadError::Io),
                Self::Gzip(decoder) => decoder.read(into).map_err(|e| gzip_error(e, so_far)),
            };
            match read {
                Err(ReadError::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// The decoder tells its errors apart by text only; a source's own errors carry a system code.
fn gzip_error(error: io::Error, so_far: u64) -> ReadError {
    if error.raw_os_error().is_some() || error.kind() == ErrorKind::Interrupted {
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
