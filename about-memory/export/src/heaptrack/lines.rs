//! Lines of a file in binary form. One thread collects their contents while another thread formats them.

use std::io::{self, Write};

/// Lines in order.
#[derive(Debug)]
pub(super) struct HeaptrackLines {
    /// For each line: a word with its letter, its form and a length. Numbers follow the word; a text is in `texts`.
    words: Vec<u64>,
    texts: String,
}

/// The position of the form in the first word. The lowest byte is the letter, the next byte is the form, and the other
/// bytes are a length.
const FORM: u32 = 8;
const LENGTH: u32 = 16;
/// The contents are numbers. The length is their count.
const NUMBERS: u64 = 0;
/// The contents are a text. The length is the text's length.
const TEXT: u64 = 1;
/// The contents are a number, and how often the line is repeated.
const REPEATED: u64 = 2;

/// The number of words in a piece.
const PIECE: usize = 1 << 14;

/// The minimum number of bytes in a piece of formatted lines.
const BYTES: usize = 1 << 16;

impl HeaptrackLines {
    pub(super) fn new() -> Self {
        Self { words: Vec::with_capacity(PIECE + 16), texts: String::new() }
    }

    /// Adds a line with a letter and numbers.
    pub(super) fn numbers(&mut self, mode: u8, numbers: &[u64]) {
        let head = head(mode, NUMBERS, numbers.len());
        // Nearly all lines have one or two numbers. A copy of fixed length takes only a few instructions.
        match numbers {
            [one] => self.words.extend([head, *one]),
            [one, other] => self.words.extend([head, *one, *other]),
            numbers => {
                self.words.push(head);
                self.words.extend_from_slice(numbers);
            }
        }
    }

    /// Adds a line with a letter and a number `count` times, but at least once.
    pub(super) fn repeated(&mut self, mode: u8, number: u64, count: u64) {
        self.words.extend([head(mode, REPEATED, 0), number, count]);
    }

    /// Adds a line with a letter and a text. The text must not contain line breaks.
    pub(super) fn text(&mut self, mode: u8, text: &str) {
        self.words.push(head(mode, TEXT, text.len()));
        self.texts.push_str(text);
    }

    pub(super) fn is_piece(&self) -> bool {
        self.words.len() >= PIECE || self.texts.len() >= BYTES
    }

    /// Formats all lines. `room` is scratch space.
    pub(super) fn write(&self, out: &mut impl Write, room: &mut Vec<u8>) -> io::Result<()> {
        let (mut words, mut texts) = (self.words.as_slice(), self.texts.as_str());
        while let [head, rest @ ..] = words {
            let (form, length) = (head >> FORM & 255, (head >> LENGTH) as usize);
            let start = room.len();
            let mut count = 1;
            room.push(*head as u8);
            words = match (form, rest) {
                (TEXT, rest) => {
                    let (text, later) = texts.split_at(length);
                    room.push(b' ');
                    room.extend_from_slice(text.as_bytes());
                    texts = later;
                    rest
                }
                (REPEATED, [number, of_line, later @ ..]) => {
                    push_hexadecimal(room, *number);
                    count = *of_line;
                    later
                }
                (_, rest) => {
                    let (numbers, later) = rest.split_at(length);
                    numbers.iter().for_each(|number| push_hexadecimal(room, *number));
                    later
                }
            };
            room.push(b'\n');
            repeat(out, room, start, count)?;
            if room.len() >= BYTES {
                out.write_all(room)?;
                room.clear();
            }
        }
        out.write_all(room)?;
        room.clear();
        Ok(())
    }
}

fn head(mode: u8, form: u64, length: usize) -> u64 {
    u64::from(mode) | form << FORM | (length as u64) << LENGTH
}

/// Repeats the last line, so that there are `count` copies of it in total.
fn repeat(out: &mut impl Write, room: &mut Vec<u8>, start: usize, count: u64) -> io::Result<()> {
    let line = room.len() - start;
    let mut written = 1;
    while written < count {
        // Each round copies as many lines as there already are.
        let more = written.min(count - written).min((BYTES / line).max(1) as u64);
        let last = room.len() - more as usize * line;
        room.extend_from_within(last..);
        written += more;
        if room.len() >= 2 * BYTES {
            out.write_all(&room[..last])?;
            room.drain(..last);
        }
    }
    Ok(())
}

/// Adds a blank and a number. Files have tens of millions of numbers, and the standard formatting takes several times
/// as long.
fn push_hexadecimal(out: &mut Vec<u8>, number: u64) {
    let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
    let mut text = [b' '; 17];
    for digit in 0..digits {
        let value = number >> (4 * (digits - 1 - digit)) & 15;
        text[1 + digit as usize] = b"0123456789abcdef"[value as usize];
    }
    // A copy of fixed length is faster.
    let end = out.len() + 1 + digits as usize;
    out.extend_from_slice(&text);
    out.truncate(end);
}
