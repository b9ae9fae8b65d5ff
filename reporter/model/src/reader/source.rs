//! Reads the bytes of a file, and decompresses them if they start like gzip data.

use std::io::{Chain, Cursor, ErrorKind, Read};

use super::GZIP_MAGIC;
#[cfg(feature = "gzip")]
use super::gzip::GzipMembers;
use crate::error::ReadError;

const BLOCK: usize = 1 << 16;

type PlainBytes<R> = Chain<Cursor<Vec<u8>>, R>;

/// The bytes of a stream, decompressed if they start like gzip data.
pub struct TextSource<R: Read>(SourceBytes<R>);

enum SourceBytes<R: Read> {
    Plain(PlainBytes<R>),
    #[cfg(feature = "gzip")]
    Gzip(GzipMembers<PlainBytes<R>>),
}

impl<R: Read> core::fmt::Debug for TextSource<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TextSource").finish_non_exhaustive()
    }
}

impl<R: Read> TextSource<R> {
    /// Reads the first bytes. They decide whether the source is decompressed.
    ///
    /// # Errors
    ///
    /// Returns an error if `reader` fails or is empty, or if its data is compressed and the feature `gzip` is missing.
    pub fn open(mut reader: R) -> Result<Self, ReadError> {
        // Reads a whole block, so that later reads start at a multiple of the block size: reads from odd offsets of a
        // file take several times as long.
        let mut head = Vec::with_capacity(BLOCK);
        reader.by_ref().take(BLOCK as u64).read_to_end(&mut head).map_err(ReadError::Io)?;
        if head.is_empty() {
            return Err(ReadError::Empty);
        }
        let is_compressed = head.starts_with(&GZIP_MAGIC);
        let bytes = Cursor::new(head).chain(reader);
        if !is_compressed {
            return Ok(Self(SourceBytes::Plain(bytes)));
        }
        #[cfg(feature = "gzip")]
        return Ok(Self(SourceBytes::Gzip(GzipMembers::new(bytes))));
        #[cfg(not(feature = "gzip"))]
        Err(ReadError::NoGzip)
    }

    /// Reads more bytes and returns their number; 0 at the end. `so_far` is the number of bytes read before. The error
    /// for truncated compressed data contains this number.
    ///
    /// # Errors
    ///
    /// Returns an error if the reader fails, or if compressed data is damaged or truncated.
    #[cfg_attr(
        not(feature = "gzip"),
        allow(unused_variables, reason = "only errors of compressed data contain `so_far`")
    )]
    pub fn read(&mut self, into: &mut [u8], so_far: u64) -> Result<usize, ReadError> {
        loop {
            let read = match &mut self.0 {
                SourceBytes::Plain(bytes) => bytes.read(into).map_err(ReadError::Io),
                #[cfg(feature = "gzip")]
                SourceBytes::Gzip(members) => members.read(into, so_far),
            };
            match read {
                Err(ReadError::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}
