//! A file as the loader would load it, computed from the file's contents without loading it.

use crate::elf::{DYNAMIC, EXECUTABLE, ElfFile, Machine, Segment, number};
use crate::references::{CodeSegment, LoadedImage};

/// The segments and relocations of a file.
#[derive(Debug)]
pub struct FileImage<'f> {
    file: ElfFile<'f>,
}

const RELA: u64 = 7;
const RELA_BYTES: u64 = 8;
const JUMP_RELA: u64 = 23;
const JUMP_RELA_BYTES: u64 = 2;
const NAMES: u64 = 5;
const SYMBOLS: u64 = 6;
const RELR: u64 = 36;
const RELR_BYTES: u64 = 35;

impl<'f> FileImage<'f> {
    /// The image of a file.
    pub fn new(file: ElfFile<'f>) -> Self {
        Self { file }
    }

    fn dynamic(&self, tag: u64) -> Option<u64> {
        let segment = self.file.segments().find(|segment| segment.kind == DYNAMIC)?;
        let mut entries = self.file.contents(&segment)?.chunks_exact(16);
        entries.find(|entry| number(entry, 0, 8) == Some(tag)).and_then(|entry| number(entry, 8, 8))
    }

    fn segment_at(&self, address: u64) -> Option<(Segment, u64)> {
        self.file.loaded().find_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            (within < segment.file_bytes).then_some((segment, within))
        })
    }

    /// The bytes from an address to the end of its segment.
    fn bytes_from(&self, address: u64) -> Option<&'f [u8]> {
        let (segment, within) = self.segment_at(address)?;
        self.file.contents(&segment)?.get(usize::try_from(within).ok()?..)
    }

    /// Calls `each` for the words that relocations with addends fill.
    fn for_each_rela(&self, table: u64, bytes: u64, each: &mut dyn FnMut(u64, u64)) -> Option<()> {
        let length = usize::try_from(self.dynamic(bytes)?).ok()?;
        let entries = self.bytes_from(self.dynamic(table)?)?;
        let symbols = self.dynamic(SYMBOLS).and_then(|address| self.bytes_from(address)).unwrap_or_default();
        for entry in entries.get(..length)?.chunks_exact(24) {
            let [at, info, addend] = [0, 8, 16].map(|field| number(entry, field, 8).unwrap_or_default());
            // A relocation that stores an address of this file stores the sum of the symbol's address and the addend.
            // Without a symbol, the sum is the addend alone.
            let symbol = (info >> 32) * 24;
            let value = number(symbols, symbol + 8, 8).filter(|_| symbol != 0).unwrap_or_default();
            each(at, value.wrapping_add(addend));
        }
        Some(())
    }

    /// The addresses of the words into which the loader writes the address of an imported function.
    pub fn imported_slots(&self, function: &[u8]) -> Vec<u64> {
        let (names, symbols) = (self.dynamic(NAMES), self.dynamic(SYMBOLS));
        let (names, symbols) =
            (names.and_then(|at| self.bytes_from(at)), symbols.and_then(|at| self.bytes_from(at)));
        let (Some(names), Some(symbols)) = (names, symbols) else { return Vec::new() };
        let is_function = |entry: &[u8]| {
            let symbol = number(entry, 12, 4)? * 24;
            let name = usize::try_from(number(symbols, symbol, 4)?).ok()?;
            let rest = names.get(name..)?.strip_prefix(function)?;
            (rest.first() == Some(&0)).then(|| number(entry, 0, 8))?
        };
        let tables = [(RELA, RELA_BYTES), (JUMP_RELA, JUMP_RELA_BYTES)];
        let entries = tables.into_iter().filter_map(|(table, bytes)| {
            let length = usize::try_from(self.dynamic(bytes)?).ok()?;
            self.bytes_from(self.dynamic(table)?)?.get(..length)
        });
        entries.flat_map(|entries| entries.chunks_exact(24)).filter_map(is_function).collect()
    }

    /// Calls `each` for the words of packed relative relocations.
    fn for_each_relr(&self, each: &mut dyn FnMut(u64, u64)) -> Option<()> {
        let length = usize::try_from(self.dynamic(RELR_BYTES)?).ok()?;
        let entries = self.bytes_from(self.dynamic(RELR)?)?;
        let mut next = 0_u64;
        for entry in entries.get(..length)?.chunks_exact(8) {
            let entry = number(entry, 0, 8)?;
            let mut word = |at: u64| {
                if let Some(value) = self.bytes_from(at).and_then(|bytes| number(bytes, 0, 8)) {
                    each(at, value);
                }
            };
            if entry & 1 == 0 {
                word(entry);
                next = entry.wrapping_add(8);
            } else {
                (0..63)
                    .filter(|bit| entry >> (bit + 1) & 1 != 0)
                    .for_each(|bit| word(next.wrapping_add(bit * 8)));
                next = next.wrapping_add(63 * 8);
            }
        }
        Some(())
    }
}

impl LoadedImage for FileImage<'_> {
    fn machine(&self) -> Machine {
        self.file.machine()
    }

    fn is_relocatable(&self) -> bool {
        self.file.is_relocatable()
    }

    fn code(&self) -> Vec<CodeSegment<'_>> {
        let segments = self.file.loaded().filter(|segment| segment.flags & EXECUTABLE != 0);
        let code = segments.filter_map(|segment| {
            let bytes = self.file.contents(&segment)?;
            Some(CodeSegment { address: segment.address, bytes })
        });
        code.collect()
    }

    fn contains(&self, address: u64) -> bool {
        self.file.loaded().any(|segment| address.wrapping_sub(segment.address) < segment.memory_bytes)
    }

    fn for_each_word(&self, each: &mut dyn FnMut(u64, u64)) {
        // A table that is absent or cut off contains no words.
        let _ = self.for_each_rela(RELA, RELA_BYTES, each);
        let _ = self.for_each_rela(JUMP_RELA, JUMP_RELA_BYTES, each);
        let _ = self.for_each_relr(each);
        if self.is_relocatable() {
            return;
        }
        for segment in self.file.loaded().filter(|segment| segment.flags & EXECUTABLE == 0) {
            for_each_word_of(segment.address, self.file.contents(&segment).unwrap_or_default(), 0, each);
        }
    }
}

/// Calls `each` for the aligned words of a segment. In memory, the words are `distance` higher than in the file.
pub(crate) fn for_each_word_of(address: u64, bytes: &[u8], distance: u64, each: &mut dyn FnMut(u64, u64)) {
    let skipped = address.wrapping_neg() & 7;
    let bytes = usize::try_from(skipped).ok().and_then(|skipped| bytes.get(skipped..)).unwrap_or_default();
    for (index, word) in bytes.chunks_exact(8).enumerate() {
        let word =
            u64::from_le_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]]);
        each(address.wrapping_add(skipped + index as u64 * 8), word.wrapping_sub(distance));
    }
}
