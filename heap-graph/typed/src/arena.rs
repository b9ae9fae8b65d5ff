//! Chunks of arenas. A chunk consists of an unused part, the values, and often a footer at the end.
//!
//! With a footer, an arena hands out the bytes of a chunk from the end to the start. The footer contains the chunk's
//! address, and the address at which the used part starts. For the chunk in use, the arena itself may contain the start
//! of the used part instead of the footer.
//!
//! Without a footer, an arena hands out the bytes from the start to the end. For the chunk in use, it contains the end of
//! the used part next to the end of the chunk. The arena does not contain the ends of the used parts of its other chunks, which are
//! almost full, so these are unknown.

use std::collections::BTreeMap;
use std::mem::size_of;

use crate::blocks::HeapBlock;
use crate::walk::TypedContents;

/// The largest footer, in bytes.
const LARGEST_FOOTER: u64 = 256;

/// The values in the chunks of arenas, by address.
#[derive(Debug, Default)]
pub(crate) struct ArenaValues {
    by_address: BTreeMap<u64, (TypedContents, u64)>,
    /// Buffers that vectors have outgrown, by address.
    outgrown: BTreeMap<u64, (TypedContents, u64)>,
}

impl ArenaValues {
    /// Adds a value. Returns whether it is new, or larger than the value that was known at its address.
    pub(crate) fn add(&mut self, address: u64, contents: TypedContents, bytes: u64) -> bool {
        let known = self.by_address.get(&address);
        let is_new = known.is_none_or(|(_, known)| *known < bytes);
        if is_new {
            self.by_address.insert(address, (contents, bytes));
        }
        is_new
    }

    /// Adds a buffer that a vector has outgrown. It overlaps no value.
    pub(crate) fn add_outgrown(&mut self, address: u64, contents: TypedContents, bytes: u64) {
        self.outgrown.insert(address, (contents, bytes));
    }

    /// All values, by address, with their sizes in bytes.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, TypedContents, u64)> {
        self.by_address.iter().map(|(address, (contents, bytes))| (*address, *contents, *bytes))
    }

    /// Removes each value at these addresses that overlaps another value. A value stays if it contains the other value
    /// completely, or is completely inside of the other value.
    pub(crate) fn remove_contradicted(&mut self, addresses: &[u64]) {
        for start in addresses {
            let Some((_, bytes)) = self.by_address.get(start) else { continue };
            let end = start.saturating_add(*bytes);
            let end_of = |(other, (_, bytes)): (&u64, &(_, u64))| other.saturating_add(*bytes);
            let before = self.by_address.range(..start).next_back().map(end_of);
            let is_cut = before.is_some_and(|before| before > *start && before < end);
            if is_cut || self.by_address.range(start + 1..end).any(|other| end_of(other) > end) {
                self.by_address.remove(start);
            }
        }
    }

    /// The ranges of addresses that have values, sorted and without overlaps.
    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<(u64, u64)> = Vec::new();
        for (start, (_, bytes)) in &self.by_address {
            let end = start.saturating_add(*bytes);
            match all.last_mut().filter(|(_, last)| *last >= *start) {
                Some((_, last)) => *last = end.max(*last),
                None => all.push((*start, end)),
            }
        }
        all
    }

    /// The end of the last value in a block. The start of a block without values.
    pub(crate) fn end_within(&self, block: &HeapBlock) -> u64 {
        let end = block.address.saturating_add(block.requested);
        let values = self.by_address.range(block.address..end);
        values.map(|(at, (_, bytes))| at.saturating_add(*bytes)).max().unwrap_or(block.address)
    }

    /// The outgrown buffers in a block.
    pub(crate) fn outgrown_within(&self, block: &HeapBlock) -> impl Iterator<Item = (TypedContents, u64)> {
        let end = block.address.saturating_add(block.requested);
        self.outgrown.range(block.address..end).map(|(_, outgrown)| *outgrown)
    }

    /// The values in a block, without the values inside of other values.
    pub(crate) fn within(&self, block: &HeapBlock) -> impl Iterator<Item = (TypedContents, u64)> {
        let end = block.address.saturating_add(block.requested);
        let mut free = block.address;
        self.by_address.range(block.address..end).filter_map(move |(address, (contents, bytes))| {
            let is_outer = *address >= free;
            if is_outer {
                free = address.saturating_add(*bytes);
            }
            is_outer.then_some((*contents, *bytes))
        })
    }
}

/// Whether a chunk ends in a footer of this size at the address `at`: the footer contains the chunk's address and
/// another address in the chunk.
pub(crate) fn is_footer(block: &HeapBlock, at: u64, size: u64, word: impl Fn(u64) -> Option<u64>) -> bool {
    let is_last = at.checked_add(size) == Some(block.address.saturating_add(block.requested));
    if !is_last || size > LARGEST_FOOTER || !at.is_multiple_of(size_of::<u64>() as u64) {
        return false;
    }
    let words = (at..at.saturating_add(size)).step_by(size_of::<u64>()).filter_map(word);
    let inside: Vec<u64> = words.filter(|word| (block.address..=at).contains(word)).collect();
    inside.len() > 1 && inside.contains(&block.address)
}

/// The used and the unused part of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkUse {
    start: u64,
    /// The address of the footer, or the end of a chunk without a footer.
    end: u64,
    /// The end of the last known value, in a chunk that is used from its start. `None` in a chunk with a footer.
    last_value: Option<u64>,
    /// The other end of the used part; `None` if it is unknown.
    used: Option<u64>,
}

impl ChunkUse {
    /// A chunk with values between `start` and `footer`. The start of the used part is not known yet.
    pub(crate) fn new(start: u64, footer: u64) -> Self {
        Self { start, end: footer, last_value: None, used: None }
    }

    /// A chunk without a footer. The end of the used part is not known yet.
    pub(crate) fn upward(start: u64, end: u64, last_value: u64) -> Self {
        Self { start, end, last_value: Some(last_value), used: None }
    }

    /// The address of the footer or of the end, if the used part is unknown.
    pub(crate) fn end_of_unknown(&self) -> Option<u64> {
        self.used.is_none().then_some(self.end)
    }

    /// Whether an address is in the used part. False if the used part is unknown.
    pub(crate) fn is_used(&self, address: u64) -> bool {
        self.used_range().is_some_and(|(start, end)| (start..end).contains(&address))
    }

    /// The start and the end of the used part; `None` if it is unknown.
    pub(crate) fn used_range(&self) -> Option<(u64, u64)> {
        let used = self.used?;
        Some(if self.last_value.is_some() { (self.start, used) } else { (used, self.end) })
    }

    /// The number of bytes for values, and the number of used bytes. `None` if the used part is unknown.
    pub(crate) fn bytes(&self) -> Option<(u64, u64)> {
        let (start, end) = self.used_range()?;
        Some((self.end - self.start, end - start))
    }

    /// Finds the used part in the words of a footer or of an arena. One of these words may be the chunk's address.
    pub(crate) fn note(&mut self, words: impl Iterator<Item = u64>) {
        let mut inside: Vec<u64> = words.filter(|word| (self.start..=self.end).contains(word)).collect();
        if let Some(start) = inside.iter().position(|word| *word == self.start) {
            inside.swap_remove(start);
        }
        let found = match self.last_value {
            // A word with the footer's address is from the time when the chunk was new. It does not show how much of
            // the chunk is used now.
            None => inside.into_iter().filter(|word| *word < self.end).min(),
            Some(last) => inside.into_iter().filter(|word| *word >= last).min(),
        };
        self.used = [self.used, found].into_iter().flatten().min();
    }
}
