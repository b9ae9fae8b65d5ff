//! Counts live bytes by type.

use std::collections::BTreeMap;

use crate::arena::ChunkUse;
use crate::infer::{TypeOrigin, TypedHeap};
use crate::type_name::NameBasis;
use crate::walk::TypedContents;

/// The blocks of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeCensusRow {
    /// The type; `in f` if only an allocating function `f` is known.
    pub name: String,
    /// The number of blocks; for values in the chunks of an arena, the number of values.
    pub blocks: u64,
    /// The usable bytes of the blocks; for chunks, without the bytes of the values that have rows of their own.
    pub bytes: u64,
    /// The number of blocks whose type is from an owner, not from their stack.
    pub by_owner: u64,
}

/// A summary of the whole heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeCensus {
    /// The rows, ordered by bytes, the largest first, and then by name.
    pub rows: Vec<TypeCensusRow>,
    /// The number of blocks.
    pub blocks: u64,
    /// The usable bytes of all blocks.
    pub bytes: u64,
    /// The number of blocks with a type.
    pub typed_blocks: u64,
    /// The usable bytes of blocks with a type. In the used part of a chunk, only the bytes of known values count.
    pub typed_bytes: u64,
    /// The number of blocks whose stack names types with a layout, but whose size fits none of these types.
    pub misfits: u64,
    /// The number of pointers.
    pub edges: u64,
    /// The number of pointers whose path names a member or a variant.
    pub named_edges: u64,
    /// The number of pointers without a path, including words of blocks without a layout.
    pub edges_without_path: u64,
}

impl TypedHeap<'_> {
    /// Counts blocks, bytes and pointers by type.
    pub fn census(&self) -> TypeCensus {
        let mut all = TypeCensus::default();
        let info = self.walk.info();
        // The number and the bytes of values in chunks, by their type and by the type of the chunk.
        let mut in_chunks: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
        let named = |value: TypedContents| value.text(info);
        let mut by_basis: BTreeMap<NameBasis, (usize, TypeCensusRow)> = BTreeMap::new();
        for (index, block) in self.blocks().iter().enumerate() {
            let (_, row) =
                by_basis.entry(self.basis(index)).or_insert_with(|| (index, TypeCensusRow::default()));
            row.blocks += 1;
            row.bytes += block.usable;
            row.by_owner += u64::from(self.origin(index) == TypeOrigin::Owner);
            all.blocks += 1;
            all.bytes += block.usable;
            if self.is_typed(index) {
                all.typed_blocks += 1;
                all.typed_bytes += block.usable;
            }
            if let Some(contents) = self.contents[index].filter(|contents| contents.is_chunk()) {
                let mut of_values = 0;
                let values = self.values.within(block).map(|(value, bytes)| (named(value), bytes));
                let outgrown = self.values.outgrown_within(block);
                let outgrown = outgrown.map(|(value, bytes)| (format!("outgrown {}", named(value)), bytes));
                for (value, bytes) in values.chain(outgrown) {
                    let (count, sum) = in_chunks.entry((value, contents.text(info))).or_default();
                    *count += 1;
                    *sum += bytes;
                    of_values += bytes;
                }
                row.bytes -= of_values;
                // In the used part of a chunk, only the bytes of known values have a type.
                let used = self.chunk_uses.get(&index).and_then(ChunkUse::bytes).map_or(0, |(_, used)| used);
                all.typed_bytes -= used.saturating_sub(of_values);
            }
            all.misfits += u64::from(self.misfits(index));
        }
        for edge in &self.edges {
            all.edges += 1;
            let path = edge.path.filter(|path| *path != crate::path::PathTable::EMPTY);
            all.edges_without_path += u64::from(path.is_none());
            all.named_edges += u64::from(path.is_some_and(|path| self.walk.paths.is_named(path)));
        }
        let mut rows: BTreeMap<String, TypeCensusRow> = BTreeMap::new();
        for (first, part) in by_basis.into_values() {
            let row = rows.entry(self.type_name(first)).or_default();
            row.blocks += part.blocks;
            row.bytes += part.bytes;
            row.by_owner += part.by_owner;
        }
        for ((value, chunk), (values, bytes)) in in_chunks {
            let row = rows.entry(format!("{value} in a {chunk}")).or_default();
            (row.blocks, row.bytes, row.by_owner) = (values, bytes, values);
        }
        all.rows = rows.into_iter().map(|(name, row)| TypeCensusRow { name, ..row }).collect();
        all.rows.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.name.cmp(&other.name)));
        all
    }
}
