//! A compressed file: the frame of gzip (RFC 1952) around what `flate2` compresses.
//!
//! `flate2` has a writer of gzip, too, with 16 KiB of tables for its checksum and with headers that nobody here sets.
//! This one adds 4 KiB to a program.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::write::{self, To};
use crate::report_set::ReportSet;

/// Magic number, deflate, no flags, no time; what follows is the level and an unknown system.
const HEADER: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
const UNKNOWN_SYSTEM: u8 = 255;

/// Writes a set. `level` is from 0 to 9.
pub(super) fn document(to: To<'_>, set: &ReportSet, level: u32) -> io::Result<()> {
    let effort = match level {
        9.. => 2,
        0 | 1 => 4,
        _ => 0,
    };
    to(&HEADER)?;
    to(&[effort, UNKNOWN_SYSTEM])?;
    let mut encoder = DeflateEncoder::new(Sink(to), Compression::new(level));
    let (mut sum, mut size) = (Checksum::new(), 0_u32);
    let mut compress = |piece: &[u8]| {
        sum.add(piece);
        // The format has room for the size modulo 2^32.
        size = size.wrapping_add(piece.len() as u32);
        encoder.write_all(piece)
    };
    write::document(&mut compress, set)?;
    let Sink(to) = encoder.finish()?;
    to(&sum.get().to_le_bytes())?;
    to(&size.to_le_bytes())
}

struct Sink<'a>(To<'a>);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The polynomial of gzip's CRC-32, lowest bit first.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// At `[n][byte]` the effect of a byte with `n` bytes behind it.
static EFFECTS: [[u32; 256]; 4] = effects();

const fn effects() -> [[u32; 256]; 4] {
    let mut effects = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let mut effect = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            effect = if effect & 1 == 1 { effect >> 1 ^ POLYNOMIAL } else { effect >> 1 };
            bit += 1;
        }
        effects[0][byte] = effect;
        byte += 1;
    }
    let mut behind = 1;
    while behind < 4 {
        let mut byte = 0;
        while byte < 256 {
            let before = effects[behind - 1][byte];
            effects[behind][byte] = before >> 8 ^ effects[0][(before & 0xff) as usize];
            byte += 1;
        }
        behind += 1;
    }
    effects
}

/// CRC-32, of four bytes at a time.
struct Checksum(u32);

impl Checksum {
    fn new() -> Self {
        Self(u32::MAX)
    }

    fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            let [a, b, c, d] = (self.0 ^ u32::from_le_bytes(*word)).to_le_bytes().map(usize::from);
            self.0 = EFFECTS[3][a] ^ EFFECTS[2][b] ^ EFFECTS[1][c] ^ EFFECTS[0][d];
        }
        for byte in rest {
            self.0 = self.0 >> 8 ^ EFFECTS[0][usize::from(self.0 as u8 ^ byte)];
        }
    }

    fn get(&self) -> u32 {
        !self.0
    }
}
