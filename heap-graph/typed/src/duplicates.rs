//! Finds strings and slices of bytes whose contents occur in several blocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use crate::infer::TypedHeap;
use crate::memory::MemorySource;
use crate::walk::TypedContents;

/// The size of the pieces in which contents are read, in bytes.
const PIECE: usize = 1 << 16;

/// Copies of one type that are held by the same field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DuplicateRow {
    /// The type: `str` or a slice of bytes.
    pub name: String,
    /// The field that holds the copies, named as in [`ChainLink::name`](crate::ChainLink::name).
    pub held_by: String,
    /// The number of copies. The first block with given contents is not a copy.
    pub blocks: u64,
    /// The requested bytes of the copies.
    pub bytes: u64,
    /// The number of different contents among the copies.
    pub different: u64,
    /// The address of one copy.
    pub example: u64,
}

/// The equal strings and slices of bytes of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Duplicates {
    /// The rows, ordered by bytes, the largest first, and then by name.
    pub rows: Vec<DuplicateRow>,
    /// The number of all copies.
    pub blocks: u64,
    /// The requested bytes of all copies.
    pub bytes: u64,
    /// The number of strings and slices with unknown length or unreadable contents.
    pub unknown_blocks: u64,
}

/// The length of contents, and two hashes with random keys of this run.
type ContentsKey = (u64, u64, u64);

impl TypedHeap<'_> {
    /// Finds equal strings and slices of bytes that are not empty. `memory` must be the memory passed to
    /// [`TypedHeap::new`]. Only this function compares the contents of strings and slices of bytes. It stores hashes
    /// while it runs, and the result contains no contents.
    ///
    /// A scan dump contains only whole words, so it lacks the last four bytes of a block of 20 bytes. A core file or a
    /// process has these bytes: combine it with the dump by [`LayeredMemory`](crate::LayeredMemory).
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

    /// The length of a string or of a slice of bytes. `None` if the block is neither, `Some(None)` if the length is
    /// unknown.
    fn bytes_of(&self, block: usize) -> Option<Option<u64>> {
        let info = self.walk.info();
        match self.contents[block]? {
            // `first` is 0 for strings and slices. The bytes of a ring buffer may start later in the block.
            TypedContents::Slice { element, first: 0, len } if info.name(element) == "u8" => {
                Some(len.map(|len| len.min(self.blocks()[block].requested)))
            }
            _ => None,
        }
    }
}

/// The key of contents; `None` if they are unreadable.
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
        // A hash may depend on how its input is split, so all contents are split in the same way.
        if !fill(memory, address, &mut buffer[..piece]) {
            return None;
        }
        states.iter_mut().for_each(|state| state.write(&buffer[..piece]));
        left -= piece as u64;
        address = address.saturating_add(piece as u64);
    }
    Some((len, states[0].finish(), states[1].finish()))
}

/// Reads until the buffer is full. Several reads may be needed: a scan dump contains only whole words, and another
/// source may have the remaining bytes.
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
