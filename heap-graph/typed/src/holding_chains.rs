//! The reasons why blocks are alive: their holders, and a shortest chain of fields from a static to each block.

use std::collections::{BTreeMap, VecDeque};

use crate::graph::WORD;
use crate::infer::TypedHeap;
use crate::path::FieldPathId;
use crate::type_name::NameBasis;
use crate::walk::TypedContents;

/// The holder of a block on a shortest chain.
#[derive(Clone, Copy, Debug)]
enum HeldBy {
    /// A static: the index of the edge from it.
    Static(usize),
    Outside,
    Block(u32, Option<FieldPathId>),
}

/// The facts that the name of a holder depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HolderBasis {
    Static(usize),
    Block(NameBasis, Option<FieldPathId>),
}

/// The shortest chains to all blocks of a heap.
#[derive(Debug)]
pub struct HoldingChains<'h, 'i> {
    heap: &'h TypedHeap<'i>,
    held_by: Vec<HeldBy>,
    /// For each block, whether another block holds it.
    is_held: Vec<bool>,
}

/// A link of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainLink {
    /// The index of the block that holds the next block; `None` for a static, and for a holder outside of the heap.
    pub block: Option<usize>,
    /// The name for display: `static own::STORE.users`, `User.email`, or a text for a holder outside of the heap.
    pub name: String,
}

/// The blocks that the same field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderRow {
    /// The name of the field, as in [`ChainLink::name`].
    pub name: String,
    /// The number of blocks.
    pub blocks: u64,
    /// The usable bytes of the blocks.
    pub bytes: u64,
}

impl<'i> TypedHeap<'i> {
    /// Finds a shortest chain to each block. A chain starts at a static. For a block that no static holds, the chain
    /// starts outside of the heap.
    pub fn holding_chains(&self) -> HoldingChains<'_, 'i> {
        let mut held_by = vec![None; self.blocks().len()];
        let mut waiting = VecDeque::new();
        for (index, (_, edge)) in self.from_statics.iter().enumerate() {
            visit(&mut held_by, &mut waiting, edge.to, HeldBy::Static(index));
        }
        self.spread(&mut held_by, &mut waiting);
        for block in &self.not_held {
            visit(&mut held_by, &mut waiting, *block as u32, HeldBy::Outside);
        }
        self.spread(&mut held_by, &mut waiting);
        let held_by = held_by.into_iter().map(|held| held.unwrap_or(HeldBy::Outside)).collect();
        HoldingChains { heap: self, held_by, is_held: self.held_by_blocks() }
    }

    fn spread(&self, held_by: &mut [Option<HeldBy>], waiting: &mut VecDeque<u32>) {
        while let Some(block) = waiting.pop_front() {
            let at = block as usize;
            for edge in &self.edges[self.firsts[at]..self.firsts[at + 1]] {
                visit(held_by, waiting, edge.to, HeldBy::Block(block, edge.path));
            }
        }
    }
}

fn visit(held_by: &mut [Option<HeldBy>], waiting: &mut VecDeque<u32>, block: u32, by: HeldBy) {
    let held = &mut held_by[block as usize];
    if held.is_none() {
        *held = Some(by);
        waiting.push_back(block);
    }
}

impl HoldingChains<'_, '_> {
    /// A shortest chain to a block, from the outermost holder to the holder of the block itself.
    pub fn chain(&self, block: usize) -> Vec<ChainLink> {
        let mut chain = vec![self.holder(block)];
        while let Some(above) = chain.last().and_then(|holder| holder.block) {
            chain.push(self.holder(above));
        }
        chain.reverse();
        chain
    }

    /// The fields that hold these blocks, ordered by bytes, the largest first, and then by name. Each block counts
    /// once.
    pub fn holders(&self, blocks: impl IntoIterator<Item = usize>) -> Vec<HolderRow> {
        let mut rows: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for block in blocks {
            let row = rows.entry(self.holder(block).name).or_default();
            row.0 += 1;
            row.1 += self.heap.blocks()[block].usable;
        }
        let rows = rows.into_iter().map(|(name, (blocks, bytes))| HolderRow { name, blocks, bytes });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.name.cmp(&other.name)));
        rows
    }

    /// The chunk that the arena itself holds, for any chunk of the arena. Each chunk holds the chunk that the arena
    /// allocated before it.
    pub(crate) fn first_chunk(&self, block: usize) -> usize {
        let is_chunk = |block: usize| self.heap.contents[block].is_some_and(TypedContents::is_chunk);
        let mut first = block;
        while let HeldBy::Block(by, _) = self.held_by[first]
            && is_chunk(by as usize)
        {
            first = by as usize;
        }
        first
    }

    /// The basis of the name of a block's holder; `None` if the holder is outside of the heap.
    pub(crate) fn basis(&self, block: usize) -> Option<HolderBasis> {
        match self.held_by[block] {
            HeldBy::Outside => None,
            HeldBy::Static(edge) => Some(HolderBasis::Static(edge)),
            HeldBy::Block(by, path) => Some(HolderBasis::Block(self.heap.basis(by as usize), path)),
        }
    }

    pub(crate) fn holder(&self, block: usize) -> ChainLink {
        let heap = self.heap;
        let text = |path: Option<FieldPathId>| path.map(|path| heap.walk.paths.text(path, heap.walk.info()));
        match self.held_by[block] {
            HeldBy::Outside => {
                ChainLink { block: None, name: heap.outer_holder(block, &self.is_held).to_owned() }
            }
            HeldBy::Static(edge) => ChainLink { block: None, name: heap.static_text(edge) },
            HeldBy::Block(by, path) => {
                let by = by as usize;
                let path = text(path).unwrap_or_else(|| format!(" ({WORD})"));
                // In the name of a slice type, the brackets mean its elements.
                let name = heap.type_name(by);
                let path =
                    if name.starts_with('[') { path.strip_prefix("[]").unwrap_or(&path) } else { &path };
                ChainLink { block: Some(by), name: format!("{name}{path}") }
            }
        }
    }
}
