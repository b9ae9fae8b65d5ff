//! Strings and slices of bytes that another block has, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use crate::infer::TypedHeap;
use crate::memory::MemorySource;
use crate::walk::TypedContents;

/// Contents are read in pieces of this size.
const PIECE: usize = 1 << 16;

/// Copies of one type that the same field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DuplicateRow {
    /// The type: `str` or a slice of bytes.
    pub name: String,
    /// The field that holds the copies, as in [`ChainLink::name`](crate::ChainLink::name).
    pub held_by: String,
    /// The number of copies. The first block with these contents does not count.
    pub blocks: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// How many different contents these are.
    pub different: u64,
    /// The address of one of them.
    pub example: u64,
}

/// The equal strings and slices of bytes of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Duplicates {
    /// The rows by descending bytes, then by name.
    pub rows: Vec<DuplicateRow>,
    /// The number of all copies.
    pub blocks: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// The number of strings and slices whose length is unknown, or whose contents cannot be read.
    pub unknown_blocks: u64,
}

/// The length of contents, and two hashes of them with keys of this run.
type ContentsKey = (u64, u64, u64);

impl TypedHeap<'_> {
    /// Strings and slices of bytes that are equal, empty ones apart. `memory` is that of [`TypedHeap::new`]. This is the only
    /// function that looks at such contents; it keeps hashes of them while it runs, and the result has none of them.
    ///
    /// A scan dump has whole words only: the end of a string whose block has 20 bytes is known to a core file or a
    /// process, with which [`LayeredMemory`](crate::LayeredMemory) combines it.
    pub fn duplicates(&self, memory: &dyn MemorySource) -> Duplicates {
        let mut found = Duplicates::default();
        let hashers = [RandomState::new(), RandomState::new()];
        let mut by_contents: HashMap<ContentsKey, Vec<usize>> = HashMap::new();
        for index in 0..self.blocks().len() {
            match self.bytes_of(index) {
                Some(Some(0)) | None => {}
                Some(Some(len)) => match hashed(memory, self.blocks()[index].address, len, &hashers) {
                    Some(key) => by_contents.entry(key).or_default().push(index),
                    None => found.unknown_blocks += 1,
                },
                Some(None) => found.unknown_blocks += 1,
            }
        }
        let why = self.holding_chains();
        let mut rows: BTreeMap<(String, String), DuplicateRow> = BTreeMap::new();
        let mut groups: Vec<Vec<usize>> = by_contents.into_values().filter(|group| group.len() > 1).collect();
        groups.sort_unstable();
        for copies in groups {
            let mut fields = BTreeSet::new();
            for copy in &copies[1..] {
                let (name, held_by) = (self.type_name(*copy), why.holder(*copy).name);
                let block = &self.blocks()[*copy];
                let key = (name, held_by);
                let row = rows.entry(key.clone()).or_insert_with(|| DuplicateRow {
                    name: key.0.clone(),
                    held_by: key.1.clone(),
                    blocks: 0,
                    bytes: 0,
                    different: 0,
                    example: block.address,
                });
                row.blocks += 1;
                row.bytes += block.requested;
                row.example = row.example.min(block.address);
                row.different += u64::from(fields.insert(key));
            }
        }
        found.rows = rows.into_values().collect();
        found.rows.sort_by(|one, other| {
            let names = |row: &DuplicateRow| (row.name.clone(), row.held_by.clone());
            other.bytes.cmp(&one.bytes).then_with(|| names(one).cmp(&names(other)))
        });
        found.blocks = found.rows.iter().map(|row| row.blocks).sum();
        found.bytes = found.rows.iter().map(|row| row.bytes).sum();
        found
    }

    /// The length of a string or of a slice of bytes; `None` if the block is neither, `Some(None)` if the length is unknown.
    fn bytes_of(&self, block: usize) -> Option<Option<u64>> {
        let info = self.walk.info();
        match self.contents[block]? {
            // A ring of bytes has its start elsewhere.
            TypedContents::Slice { element, first: 0, len } if info.name(element) == "u8" => {
                Some(len.map(|len| len.min(self.blocks()[block].requested)))
            }
            _ => None,
        }
    }
}

/// The key of contents; `None` if they cannot be read.
fn hashed(
    memory: &dyn MemorySource,
    mut address: u64,
    len: u64,
    hashers: &[RandomState; 2],
) -> Option<ContentsKey> {
    let mut buffer = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
    let mut states = [hashers[0].build_hasher(), hashers[1].build_hasher()];
    let mut left = len;
    while left > 0 {
        let piece = left.min(PIECE as u64) as usize;
        // A hasher may depend on how its input is cut, so all contents are cut alike.
        if !fill(memory, address, &mut buffer[..piece]) {
            return None;
        }
        states.iter_mut().for_each(|state| state.write(&buffer[..piece]));
        left -= piece as u64;
        address = address.saturating_add(piece as u64);
    }
    Some((len, states[0].finish(), states[1].finish()))
}

/// Reads until the buffer is full. A scan dump has whole words only, and another reader may have the rest.
fn fill(memory: &dyn MemorySource, address: u64, into: &mut [u8]) -> bool {
    let mut filled = 0;
    while filled < into.len() {
        match memory.read(address.saturating_add(filled as u64), &mut into[filled..]) {
            0 => return false,
            more => filled += more,
        }
    }
    true
}
