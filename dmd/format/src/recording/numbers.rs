//! Varints: see the format's documentation.

use super::MalformedPayload;

/// The maximum number of bytes of a varint.
pub(super) const MOST: usize = 9;

const BITS_OF_A_BYTE: u32 = 7;
const MOST_BITS: u32 = 56;

/// Writes a varint and returns the offset of its end. `out` must have at least [`MOST`] bytes after `at`.
#[inline(always)]
pub(super) fn write(out: &mut [u8], at: usize, number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    if bits <= MOST_BITS {
        let bytes = bits.div_ceil(BITS_OF_A_BYTE);
        let word = (number << 1 | 1) << (bytes - 1);
        put(out, at, word.to_le_bytes());
        return at + bytes as usize;
    }
    put(out, at, [0]);
    put(out, at + 1, number.to_le_bytes());
    at + MOST
}

/// The bytes of a varint, the lowest first, and the length of the varint. If the length is more than 8, the varint has
/// 9 bytes, and the returned bytes are not valid.
#[inline(always)]
pub(super) fn packed(number: u64) -> (u64, u32) {
    let bits = u64::BITS - (number | 1).leading_zeros();
    let bytes = bits.div_ceil(BITS_OF_A_BYTE);
    ((number << 1 | 1) << ((bytes - 1) & 7), bytes)
}

/// Writes the eight bytes of a word. `out` must have room for them.
#[inline(always)]
pub(super) fn write_word(out: &mut [u8], at: usize, word: u64) {
    put(out, at, word.to_le_bytes());
}

#[inline(always)]
fn put<const N: usize>(out: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(place) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>()) {
        *place = bytes;
    }
}

/// Appends a varint to a list.
pub(super) fn push(out: &mut Vec<u8>, number: u64) {
    let mut bytes = [0; MOST];
    let length = write(&mut bytes, 0, number);
    out.extend_from_slice(&bytes[..length]);
}

/// Appends bytes to a list, after a varint with their length.
pub(super) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Maps a signed number to an unsigned number, as in signed varints.
#[inline(always)]
pub(super) fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> (i64::BITS - 1)) as u64
}

#[inline(always)]
pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Reads a payload from its start to its end.
#[derive(Clone, Debug)]
pub(super) struct PayloadReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> PayloadReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[cold]
    pub(super) fn malformed(&self, reason: &'static str) -> MalformedPayload {
        MalformedPayload { offset: self.at, reason }
    }

    /// Makes all later reads fail, after an error.
    pub(super) fn end(&mut self) {
        self.at = self.bytes.len();
    }

    #[inline(always)]
    pub(super) fn byte(&mut self) -> Result<u8, MalformedPayload> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => Err(self.malformed("the payload ends too early")),
        }
    }

    #[inline(always)]
    pub(super) fn number(&mut self) -> Result<u64, MalformedPayload> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if let Some(word) = rest.first_chunk::<8>() {
            let word = u64::from_le_bytes(*word);
            let bytes = (word as u8).trailing_zeros() + 1;
            if bytes <= u8::BITS {
                self.at += bytes as usize;
                return Ok(word << (u64::BITS - 8 * bytes) >> (u64::BITS - BITS_OF_A_BYTE * bytes));
            }
        }
        self.rare_number()
    }

    /// Reads a number of 9 bytes, or a number near the end of the payload.
    #[cold]
    fn rare_number(&mut self) -> Result<u64, MalformedPayload> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(first) = rest.first() else { return Err(self.malformed("the payload ends too early")) };
        let bytes = first.trailing_zeros() + 1;
        let length = bytes as usize;
        if rest.len() < length {
            return Err(self.malformed("the payload ends too early"));
        }
        let mut word = [0; 8];
        if bytes > u8::BITS {
            word.copy_from_slice(&rest[1..MOST]);
            self.at += MOST;
            return Ok(u64::from_le_bytes(word));
        }
        word[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        Ok(u64::from_le_bytes(word) << (u64::BITS - 8 * bytes) >> (u64::BITS - BITS_OF_A_BYTE * bytes))
    }

    #[inline(always)]
    pub(super) fn signed(&mut self) -> Result<i64, MalformedPayload> {
        self.number().map(unzigzag)
    }

    /// Reads a number of at most 32 bits.
    pub(super) fn small_number(&mut self) -> Result<u32, MalformedPayload> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.malformed("a number is too large"))
    }

    /// Reads bytes that follow a varint with their length.
    pub(super) fn counted_bytes(&mut self) -> Result<&'a [u8], MalformedPayload> {
        let length = self.number()?;
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(self.malformed("the payload ends too early")),
        }
    }
}
