//! Bytes of a file, decompressed if they start as gzip does.

use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};

use flate2::bufread::GzDecoder;

use crate::error::ReadError;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

const BLOCK: usize = 1 << 16;

type Plain<R> = Chain<Cursor<Vec<u8>>, R>;

/// The bytes of a stream, decompressed if it starts as gzip does.
pub struct Source<R: Read>(Bytes<R>);

enum Bytes<R: Read> {
    Plain(Plain<R>),
    Gzip(Members<BufReader<Plain<R>>>),
}

impl<R: Read> core::fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl<R: Read> Source<R> {
    /// Reads the first bytes, which decide whether the source is decompressed.
    ///
    /// # Errors
    ///
    /// If `reader` fails or is empty.
    pub fn open(mut reader: R) -> Result<Self, ReadError> {
        // A whole block, so that later reads start at a multiple of it: reads from odd offsets of a file take
        // several times as long.
        let mut head = Vec::with_capacity(BLOCK);
        reader.by_ref().take(BLOCK as u64).read_to_end(&mut head).map_err(ReadError::Io)?;
        if head.is_empty() {
            return Err(ReadError::Empty);
        }
        let gzip = head.starts_with(&GZIP_MAGIC);
        let bytes = Cursor::new(head).chain(reader);
        Ok(Self(if gzip {
            let buffered = BufReader::with_capacity(1 << 16, bytes);
            Bytes::Gzip(Members { current: Some(Box::new(GzDecoder::new(buffered))) })
        } else {
            Bytes::Plain(bytes)
        }))
    }

    /// Reads more bytes and returns how many; 0 at the end. `so_far` is the number of bytes before, for the message.
    ///
    /// # Errors
    ///
    /// If the reader fails, or if compressed data is damaged or truncated.
    pub fn read(&mut self, into: &mut [u8], so_far: u64) -> Result<usize, ReadError> {
        loop {
            let read = match &mut self.0 {
                Bytes::Plain(bytes) => bytes.read(into).map_err(ReadError::Io),
                Bytes::Gzip(members) => members.read(into, so_far),
            };
            match read {
                Err(ReadError::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// The members of a gzip stream, one after the other. `flate2` has this too, but cannot tell a short
/// piece of garbage from a truncated member.
struct Members<B> {
    /// `None` at the end.
    current: Option<Box<GzDecoder<B>>>,
}

impl<B: BufRead> Members<B> {
    fn read(&mut self, into: &mut [u8], so_far: u64) -> Result<usize, ReadError> {
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

/// The decoder's errors differ only in their text; an error of the reader itself carries a system code.
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
