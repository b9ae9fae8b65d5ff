//! Finds the words in source code.

use std::ops::Range;

/// The longest word: longer ones are data, not names.
const LONGEST: usize = 64;

/// Calls `found` with the place of each word of `text`: of every identifier, and also of each part
/// of one that has several, such as `HashMap` and `size_of`.
///
/// Single letters and numbers are not words.
pub(crate) fn for_each_word(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let mut start = 0;
    while start < bytes.len() {
        let length = bytes[start..].iter().take_while(|&&byte| is_part_of_identifier(byte)).count();
        if length > 1 && length <= LONGEST && !bytes[start].is_ascii_digit() {
            for_each_part(bytes, start..start + length, &mut found);
        }
        start += length + 1;
    }
}

/// Counts every byte of a character beyond ASCII as a letter.
fn is_part_of_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn for_each_part(bytes: &[u8], identifier: Range<usize>, found: &mut impl FnMut(Range<usize>)) {
    let mut start = identifier.start;
    for at in identifier.clone() {
        if bytes[at] == b'_' || starts_part(bytes, at, &identifier) {
            emit_part(start..at, &identifier, found);
            start = at + usize::from(bytes[at] == b'_');
        }
    }
    emit_part(start..identifier.end, &identifier, found);
    found(identifier);
}

/// Whether a capital letter starts a word: after a small letter, or before one as in `IOError`.
fn starts_part(bytes: &[u8], at: usize, identifier: &Range<usize>) -> bool {
    at > identifier.start
        && bytes[at].is_ascii_uppercase()
        && (bytes[at - 1].is_ascii_lowercase()
            || at + 1 < identifier.end && bytes[at + 1].is_ascii_lowercase())
}

fn emit_part(part: Range<usize>, identifier: &Range<usize>, found: &mut impl FnMut(Range<usize>)) {
    if part.len() > 1 && part != *identifier {
        found(part);
    }
}
