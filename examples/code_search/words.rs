//! Finds the words in source code.

use std::ops::Range;

/// The maximum length of a word: longer sequences are data, not names.
const LONGEST: usize = 64;

/// Calls `found` with the position of each word of `text`. Each identifier is a word. If an identifier has several
/// parts, such as `HashMap` and `size_of`, each part is a word, too.
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

/// Whether a byte is part of an identifier. Every byte of a character beyond ASCII counts as a letter.
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

/// Whether a capital letter starts a word. It does after a lowercase letter, and before a lowercase letter, as in
/// `IOError`.
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
