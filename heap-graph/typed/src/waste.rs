//! Finds memory that the program has but does not use: capacity beyond the length, empty places in tables and nodes,
//! and bytes of enums that only larger variants use.

use std::collections::BTreeMap;

use dmd_analyze::short_type_name;
use hashbrown::HashMap;

use crate::blocks::HeapBlock;
use crate::debug_info::{DebugInfo, Member, TypeId, TypeKind};
use crate::holding_chains::HolderBasis;
use crate::infer::TypedHeap;
use crate::memory::MemorySource;
use crate::type_name::NameBasis;
use crate::variants;
use crate::walk::TypedContents;

/// The size of the pieces in which control bytes of a table are read.
const PIECE: usize = 1 << 16;

/// The kind of a block's unused memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WasteKind {
    /// The capacity of a vector, a deque or a string beyond its length.
    Capacity,
    /// The empty buckets of a hash table. A table keeps at least one of eight buckets empty.
    Buckets,
    /// The empty places in the nodes of a B-tree.
    Nodes,
    /// The part of an arena's chunks that the arena has not handed out.
    Chunks,
    /// The smaller buffers of vectors in an arena's chunks. The vectors have larger buffers now, and the arena frees
    /// nothing.
    Outgrown,
    /// The bytes of an enum's or a coroutine's values that only larger variants use.
    Variants,
}

impl WasteKind {
    /// The text for the kind, such as `capacity beyond length`.
    pub fn text(self) -> &'static str {
        match self {
            Self::Capacity => "capacity beyond length",
            Self::Buckets => "empty buckets",
            Self::Nodes => "empty places in nodes",
            Self::Chunks => "unused rest",
            Self::Outgrown => "outgrown buffers of vectors",
            Self::Variants => "variants smaller than the largest",
        }
    }
}

/// The blocks of one type, or the values of one enum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WasteRow {
    /// The type of the blocks; for [`WasteKind::Variants`], the enum.
    pub name: String,
    /// The field or static that holds the blocks: `Page.body`. `None` for nodes and enums, and for blocks that no block
    /// and no static holds.
    pub held_by: Option<String>,
    /// The kind of the unused memory.
    pub unused: WasteKind,
    /// The number of the enum's values; for other kinds, the number of blocks.
    pub values: u64,
    /// The number of blocks of the type; for an enum, the number of blocks with its values.
    pub blocks: u64,
    /// The requested bytes of the blocks, or the bytes of the values.
    pub bytes: u64,
    /// The unused part of these bytes.
    pub unused_bytes: u64,
    /// The number of elements, entries, keys or (in chunks) bytes for which the blocks have room; 0 for
    /// [`WasteKind::Variants`].
    pub places: u64,
    /// The number of places that are full.
    pub full_places: u64,
}

impl WasteRow {
    /// The percentage of full places, rounded down; `None` without places.
    pub fn percent_full(&self) -> Option<u64> {
        u64::try_from(100 * u128::from(self.full_places) / u128::from(self.places).max(1))
            .ok()
            .filter(|_| self.places > 0)
    }
}

/// The fill level of a block.
#[derive(Clone, Copy)]
struct BlockFill {
    unused: WasteKind,
    unused_bytes: u64,
    places: u64,
    full: u64,
}

impl BlockFill {
    /// The fill level of a block with places of one size.
    fn new(unused: WasteKind, each: u64, places: u64, full: u64) -> Self {
        let full = full.min(places);
        Self { unused, unused_bytes: (places - full).saturating_mul(each), places, full }
    }
}

/// The unused memory of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapWaste {
    /// The rows with unused bytes, ordered by unused bytes, the largest first, and then by name.
    pub rows: Vec<WasteRow>,
    /// The sum of the unused bytes.
    pub unused_bytes: u64,
    /// The number of blocks whose unused part is unknown, such as vectors and strings with unknown length. No block and
    /// no static points to such a vector or string, but a stack may.
    pub unknown_blocks: u64,
    /// The requested bytes of these blocks.
    pub unknown_bytes: u64,
    /// The bytes that the allocator added to the requested sizes.
    pub slop: u64,
}

#[derive(Default)]
struct WasteSum {
    values: u64,
    blocks: u64,
    bytes: u64,
    unused_bytes: u64,
    places: u64,
    full: u64,
}

impl WasteSum {
    fn add(&mut self, fill: BlockFill, requested: u64) {
        self.values += 1;
        self.blocks += 1;
        self.bytes += requested;
        self.unused_bytes += fill.unused_bytes.min(requested);
        self.places = self.places.saturating_add(fill.places);
        self.full = self.full.saturating_add(fill.full);
    }

    fn append(&mut self, other: &Self) {
        self.values += other.values;
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.unused_bytes += other.unused_bytes;
        self.places = self.places.saturating_add(other.places);
        self.full = self.full.saturating_add(other.full);
    }
}

impl TypedHeap<'_> {
    /// Finds the memory that containers and enums do not use, by type. `memory` must be the memory passed to
    /// [`TypedHeap::new`]. The control bytes of tables, the lengths of nodes, and blocks with enums are read and not
    /// stored.
    pub fn waste(&self, memory: &dyn MemorySource) -> HeapWaste {
        let mut waste = HeapWaste::default();
        let why = self.holding_chains();
        // Most blocks share their names, and building a name takes time. So each key stores one of its blocks, for the
        // name. A chunk counts for the holder of the arena's first chunk.
        let mut by_basis: HashMap<(NameBasis, Option<HolderBasis>, WasteKind), (usize, WasteSum)> =
            HashMap::new();
        for (index, block) in self.blocks().iter().enumerate() {
            waste.slop += block.usable.saturating_sub(block.requested);
            let unused = self.unused(index, memory);
            if let Some(None) = unused {
                waste.unknown_blocks += 1;
                waste.unknown_bytes += block.requested;
            }
            for fill in unused.flatten().into_iter().chain(self.outgrown(index)) {
                let is_chunk = matches!(fill.unused, WasteKind::Chunks | WasteKind::Outgrown);
                let held = if is_chunk { why.first_chunk(index) } else { index };
                let holder = (fill.unused != WasteKind::Nodes).then(|| why.basis(held)).flatten();
                let key = (self.basis(index), holder, fill.unused);
                let (_, sum) = by_basis.entry(key).or_insert_with(|| (held, WasteSum::default()));
                sum.add(fill, block.requested);
            }
        }
        let mut rows: BTreeMap<(String, Option<String>, WasteKind), WasteSum> = BTreeMap::new();
        let mut sums: Vec<_> = by_basis.into_iter().collect();
        sums.sort_unstable_by_key(|(_, (first, _))| *first);
        for ((_, holder, unused), (first, sum)) in sums {
            let held_by = holder.map(|_| why.holder(first).name);
            rows.entry((self.type_name(first), held_by, unused)).or_default().append(&sum);
        }
        for (of, sum) in variants::values(self, memory) {
            let name = short_type_name(self.walk.info().name(of));
            let row = rows.entry((name, None, WasteKind::Variants)).or_default();
            row.values += sum.values;
            row.blocks += sum.blocks;
            row.bytes += sum.bytes;
            row.unused_bytes += sum.unused_bytes;
        }
        let rows = rows.into_iter().filter(|(_, row)| row.unused_bytes > 0);
        waste.rows = rows
            .map(|((name, held_by, unused), sum)| {
                let WasteSum { values, blocks, bytes, unused_bytes, places, full } = sum;
                WasteRow {
                    name,
                    held_by,
                    unused,
                    values,
                    blocks,
                    bytes,
                    unused_bytes,
                    places,
                    full_places: full,
                }
            })
            .collect();
        waste.rows.sort_by(|one, other| {
            let names = |row: &WasteRow| (row.name.clone(), row.held_by.clone());
            other.unused_bytes.cmp(&one.unused_bytes).then_with(|| names(one).cmp(&names(other)))
        });
        waste.unused_bytes = waste.rows.iter().map(|row| row.unused_bytes).sum();
        waste
    }

    /// The outgrown buffers in a chunk.
    fn outgrown(&self, index: usize) -> Option<BlockFill> {
        let (_, used) = self.chunk_uses.get(&index)?.bytes()?;
        let outgrown: u64 = self.values.outgrown_within(&self.blocks()[index]).map(|(_, bytes)| bytes).sum();
        let full = used.saturating_sub(outgrown);
        (outgrown > 0).then(|| BlockFill::new(WasteKind::Outgrown, 1, used, full))
    }

    /// The unused part of a block. `None` if the block is not a container's, `Some(None)` if its unused part is
    /// unknown.
    fn unused(&self, index: usize, memory: &dyn MemorySource) -> Option<Option<BlockFill>> {
        let info = self.walk.info();
        let block = &self.blocks()[index];
        match self.contents[index]? {
            TypedContents::Slice { len: None, .. } => Some(None),
            TypedContents::Slice { element, len: Some(len), .. } => {
                let each = info.size(element);
                let places = block.requested.checked_div(each)?;
                Some(Some(BlockFill::new(WasteKind::Capacity, each, places, len)))
            }
            TypedContents::Table { entry } => {
                let (count, control) = info.buckets(block.requested, entry)?;
                let full = full(memory, block.address.saturating_add(control), count)?;
                Some(Some(BlockFill::new(WasteKind::Buckets, info.size(entry), count, full)))
            }
            TypedContents::One(of) => {
                let node = BTreeNode::new(info, of)?;
                Some(node.fill(block, memory))
            }
            TypedContents::Headed { header, element } => {
                let len = self.walk.plans.header_len(header).filter(|len| len.size <= 8)?;
                let len = number(memory, block.address.checked_add(len.at)?, len.size)?;
                let each = info.size(element);
                let places = block.requested.saturating_sub(info.size(header)).checked_div(each)?;
                Some(Some(BlockFill::new(WasteKind::Capacity, each, places, len)))
            }
            TypedContents::Chunk { .. }
            | TypedContents::HeadedChunk { .. }
            | TypedContents::FlatChunk { .. } => {
                let used = self.chunk_uses.get(&index)?.bytes();
                Some(used.map(|(all, used)| BlockFill::new(WasteKind::Chunks, 1, all, used)))
            }
            TypedContents::Tail { .. } | TypedContents::Task { .. } | TypedContents::Prefixed { .. } => None,
        }
    }
}

/// The number of full buckets. The control byte of a full bucket is below 0x80.
fn full(memory: &dyn MemorySource, mut address: u64, mut count: u64) -> Option<u64> {
    let mut buffer = [0; PIECE];
    let mut full = 0;
    while count > 0 {
        let piece = count.min(PIECE as u64) as usize;
        if memory.read(address, &mut buffer[..piece]) < piece {
            return None;
        }
        full += buffer[..piece].iter().filter(|byte| **byte < 0x80).count() as u64;
        count -= piece as u64;
        address = address.saturating_add(piece as u64);
    }
    Some(full)
}

/// The layout of a B-tree's node.
struct BTreeNode {
    /// The offset and the size of the field with the number of keys.
    len: (u64, u64),
    /// The number of keys for which the node has room.
    most: u64,
    /// The bytes of a key, a value and, in an inner node, a pointer.
    each: u64,
}

impl BTreeNode {
    fn new(info: &DebugInfo, of: TypeId) -> Option<Self> {
        let path = info.name(of).strip_prefix("alloc::collections::btree::node::")?;
        let (leaf, at, pointer) = match path {
            _ if path.starts_with("LeafNode<") => (of, 0, 0),
            _ if path.starts_with("InternalNode<") => {
                let data = info.member(of, "data")?;
                (info.type_at(data.of)?, data.offset, 8)
            }
            _ => return None,
        };
        let (key, most) = array(info, &info.member(leaf, "keys")?)?;
        let (value, _) = array(info, &info.member(leaf, "vals")?)?;
        let len = info.member(leaf, "len")?;
        let size = info.type_at(len.of).map(|of| info.size(of)).filter(|size| *size <= 8)?;
        let each = key.saturating_add(value).saturating_add(pointer);
        Some(Self { len: (at.saturating_add(len.offset), size), most, each })
    }

    fn fill(&self, block: &HeapBlock, memory: &dyn MemorySource) -> Option<BlockFill> {
        let len = number(memory, block.address.checked_add(self.len.0)?, self.len.1)?;
        Some(BlockFill::new(WasteKind::Nodes, self.each, self.most, len))
    }
}

/// The number at an address. `size` is at most 8 bytes.
fn number(memory: &dyn MemorySource, address: u64, size: u64) -> Option<u64> {
    let mut word = [0; 8];
    let bytes = &mut word[..size as usize];
    (memory.read(address, bytes) == bytes.len()).then(|| u64::from_le_bytes(word))
}

/// The element size and the number of elements of a member that is an array.
fn array(info: &DebugInfo, member: &Member) -> Option<(u64, u64)> {
    let TypeKind::Array(element, Some(count)) = info.get(info.type_at(member.of)?).kind else { return None };
    Some((info.size(info.type_at(element)?), count))
}
