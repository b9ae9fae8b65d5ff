//! Async tasks by the `await` at which they are, and what they keep alive.
//!
//! The future of an `async` function or block is a coroutine: an enum whose variants are its states. A state has the
//! values that live across an `await`, among them the future that it awaits. Where that one is a coroutine, too, in the
//! same block or behind a pointer, the chain goes on.

use std::collections::{BTreeMap, BTreeSet};

use dmd_analyze::short_type_name;
use hashbrown::HashMap;
use heap_graph::dominators::retained_by_groups;
use heap_graph::{DominatorTree, NodeId, NodeIndex};

use crate::blocks::Block;
use crate::debug_info::{DebugInfo, TypeId, Variant};
use crate::infer::{TypedHeap, same};
use crate::memory::{Memory, Reader};
use crate::plan::Wanted;
use crate::walk::{FoundVariant, Target, Walk};

/// The maximum number of futures in a chain.
const LONGEST: usize = 64;

/// A future in a chain, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Await {
    /// The function, or the block as `app::main::{async_block#0}`.
    pub future: String,
    /// Its state, as the compiler names it: `Unresumed` before its first poll, `Suspend0` at its first `await`, `Returned`, `Panicked`.
    pub state: String,
    /// The file and the line of the `await`, or of the beginning or the end of the function.
    pub place: Option<(String, u32)>,
}

/// The tasks that are at the same place: futures of the same chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskRow {
    /// The chain: the task's own future, the one that it awaits, and so on.
    pub awaits: Vec<Await>,
    /// The type of what the last future awaits, if that is no coroutine; for several coroutines, the type that has them.
    pub waits_for: Option<String>,
    /// The number of tasks.
    pub tasks: u64,
    /// The usable bytes of the blocks that hold their futures.
    pub bytes: u64,
    /// The bytes of these blocks and of all that only they keep alive, each byte once.
    pub retained_bytes: u64,
}

/// The tasks of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tasks {
    /// The rows by descending retained bytes, then by number and chain.
    pub rows: Vec<TaskRow>,
    /// The number of all tasks.
    pub tasks: u64,
    /// The usable bytes of the blocks that hold them.
    pub bytes: u64,
    /// The bytes of these blocks and of all that only they keep alive.
    pub retained_bytes: u64,
}

/// A coroutine in a block.
#[derive(Clone, Copy, Debug)]
struct Coroutine {
    block: usize,
    at: u64,
    of: TypeId,
    variant: usize,
}

/// What a coroutine awaits.
enum Next {
    Nothing,
    Coroutine(Coroutine),
    Other(TypeId),
}

/// A chain: types with the indexes of their variants, and the type of what the last one awaits.
type Chain = (Vec<(TypeId, usize)>, Option<TypeId>);

struct Finder<'h, 'i> {
    heap: &'h TypedHeap<'i>,
    reader: Reader<'h>,
    coroutines: Walk<'i>,
    pointers: Walk<'i>,
    /// The coroutines of each block that has any, without those inside of others.
    of_blocks: HashMap<usize, Vec<Coroutine>>,
    /// Blocks whose future another one awaits.
    awaited: BTreeSet<usize>,
}

impl TypedHeap<'_> {
    /// The async tasks and other futures of `async` functions and blocks on the heap, by the `await` at which they are. A
    /// future that another one awaits belongs to the chain of that one. `memory` is that of [`TypedHeap::new`], and `tree` is of
    /// the graph that [`TypedHeap::graph`] gives.
    pub fn tasks(&self, memory: &dyn Memory, tree: &DominatorTree<'_>) -> Tasks {
        let info = self.walk.info();
        let walk = |wanted| Walk::new(info, self.walk.bias, wanted);
        let mut finder = Finder {
            heap: self,
            reader: Reader::new(memory),
            coroutines: walk(Wanted::Coroutines),
            pointers: walk(Wanted::Pointers),
            of_blocks: HashMap::new(),
            awaited: BTreeSet::new(),
        };
        let mut chains: Vec<(usize, Chain)> = Vec::new();
        for coroutine in finder.all() {
            chains.push((coroutine.block, finder.chain(coroutine)));
        }
        let mut groups: BTreeMap<Chain, Vec<usize>> = BTreeMap::new();
        for (block, chain) in chains {
            if !finder.awaited.contains(&block) {
                groups.entry(chain).or_default().push(block);
            }
        }
        let mut tasks = Tasks::default();
        let mut members = Vec::new();
        for (number, (chain, blocks)) in groups.iter().enumerate() {
            let bytes = self.usable(blocks);
            let futures = chain.0.iter().map(|(of, variant)| future(info, *of, *variant)).collect();
            tasks.rows.push(TaskRow {
                awaits: futures,
                waits_for: chain.1.map(|of| name(info, of)),
                tasks: blocks.len() as u64,
                bytes,
                retained_bytes: 0,
            });
            let nodes =
                blocks.iter().filter_map(|block| tree.graph().find(NodeId(self.blocks[*block].address)));
            members.extend(nodes.map(|node| (node.index(), number as u32)));
        }
        let all: Vec<(NodeIndex, u32)> = members.iter().map(|(node, _)| (*node, 0)).collect();
        let retained = retained_by_groups(tree, tasks.rows.len(), members);
        let bytes = |bytes: u128| u64::try_from(bytes).unwrap_or(u64::MAX);
        for (row, retained) in tasks.rows.iter_mut().zip(retained) {
            row.retained_bytes = bytes(retained);
        }
        tasks.retained_bytes = retained_by_groups(tree, 1, all).first().map_or(0, |all| bytes(*all));
        tasks.bytes = self.usable(&groups.values().flatten().copied().collect::<Vec<_>>());
        tasks.tasks = tasks.rows.iter().map(|row| row.tasks).sum();
        let chain = |row: &TaskRow| -> Vec<_> {
            row.awaits.iter().map(|one| (one.future.clone(), one.place.clone())).collect()
        };
        tasks.rows.sort_by(|one, other| {
            let sizes = |row: &TaskRow| (row.retained_bytes, row.tasks);
            sizes(other).cmp(&sizes(one)).then_with(|| chain(one).cmp(&chain(other)))
        });
        tasks
    }

    /// The usable bytes of blocks, each counted once. They are sorted, and may repeat.
    fn usable(&self, blocks: &[usize]) -> u64 {
        let all: BTreeSet<usize> = blocks.iter().copied().collect();
        all.into_iter().map(|block| self.blocks[block].usable).sum()
    }
}

impl Finder<'_, '_> {
    /// Finds the coroutines of all blocks.
    fn all(&mut self) -> Vec<Coroutine> {
        let mut all = Vec::new();
        for block in 0..self.heap.blocks.len() {
            let Some(contents) = self.heap.contents[block] else { continue };
            if !self.coroutines.has_any(contents) {
                continue;
            }
            let Block { address, requested, .. } = self.heap.blocks[block];
            self.coroutines.block(self.reader.read(address, requested), contents);
            let found = self.outermost(block, 0);
            if !found.is_empty() {
                all.extend(&found);
                self.of_blocks.insert(block, found);
            }
        }
        all
    }

    /// The coroutines just found from this place of the block on that are not inside of others.
    fn outermost(&self, block: usize, start: u64) -> Vec<Coroutine> {
        let mut end = 0;
        let mut all = Vec::new();
        for FoundVariant { of, at, variant, sure } in &self.coroutines.variants {
            if *sure && *at >= end {
                end = at.saturating_add(self.heap.walk.info().size(*of));
                all.push(Coroutine { block, at: start.saturating_add(*at), of: *of, variant: *variant });
            }
        }
        all
    }

    /// The chain that begins at a coroutine.
    fn chain(&mut self, mut coroutine: Coroutine) -> Chain {
        let info = self.heap.walk.info();
        let mut chain = Vec::new();
        while chain.len() < LONGEST {
            chain.push((info.same_as(coroutine.of), coroutine.variant));
            match self.next(coroutine) {
                Next::Nothing => break,
                Next::Other(of) => return (chain, Some(info.same_as(of))),
                Next::Coroutine(next) => {
                    if next.block != coroutine.block {
                        self.awaited.insert(next.block);
                    }
                    coroutine = next;
                }
            }
        }
        (chain, None)
    }

    fn next(&mut self, coroutine: Coroutine) -> Next {
        let info = self.heap.walk.info();
        let awaitee = || {
            let state = variant(info, coroutine.of, coroutine.variant)?.members.first()?;
            let awaitee = info.member(info.type_at(state.of)?, "__awaitee")?;
            let at = coroutine.at.checked_add(state.offset)?.checked_add(awaitee.offset)?;
            Some((info.type_at(awaitee.of)?, at))
        };
        let Some((of, at)) = awaitee() else { return Next::Nothing };
        // A block may have millions of futures, so only what this one awaits is read.
        let Block { address, requested, .. } = self.heap.blocks[coroutine.block];
        let bytes = info.size(of).min(requested.saturating_sub(at));
        let bytes = self.reader.read(address.saturating_add(at), bytes);
        self.coroutines.part(bytes, of);
        self.pointers.part(bytes, of);
        let mut inside = self.outermost(coroutine.block, at);
        if inside.is_empty() {
            inside = self.behind_pointers();
        }
        match inside[..] {
            [one] => Next::Coroutine(one),
            _ => Next::Other(of),
        }
    }

    /// The coroutines to which the pointers just found lead. A pointer to the header of another task leads to none.
    fn behind_pointers(&self) -> Vec<Coroutine> {
        let (heap, info) = (self.heap, self.heap.walk.info());
        let mut all = Vec::new();
        for found in self.pointers.found.iter().filter(|found| found.sure) {
            let Target::Start { contents, .. } = found.target else { continue };
            let block = heap
                .index
                .find(&heap.blocks, found.value)
                .filter(|block| heap.blocks[*block].address == found.value)
                .filter(|block| heap.contents[*block].is_some_and(|known| same(info, known, contents)));
            let of_block = block.and_then(|block| self.of_blocks.get(&block));
            // Two are enough to know that there is more than one.
            all.extend(of_block.into_iter().flatten().take(2));
        }
        all
    }
}

fn variant(info: &DebugInfo, of: TypeId, index: usize) -> Option<&Variant> {
    info.get(of).variants.as_deref()?.all.get(index)
}

fn future(info: &DebugInfo, of: TypeId, index: usize) -> Await {
    let variant = variant(info, of, index);
    let state = variant.and_then(|variant| info.type_at(variant.members.first()?.of));
    let state = state.and_then(|state| info.name(state).rsplit("::").next()).unwrap_or_default();
    let place = variant.and_then(|variant| variant.place);
    Await {
        future: name(info, of),
        state: state.to_owned(),
        place: place.map(|(file, line)| (info.text(file).to_owned(), line)),
    }
}

/// The type, in which the future of a function has the function's name.
fn name(info: &DebugInfo, of: TypeId) -> String {
    short_type_name(info.name(of)).replace("::{async_fn#0}", "")
}
