//! Groups async tasks by their current `await`, with the bytes that they keep alive.
//!
//! The future of an `async` function or block is a coroutine: an enum whose variants are its states. A state contains
//! the values that live across an `await`, including the awaited future. If the awaited future is also a coroutine,
//! in the same block or behind a pointer, the chain continues with it. If several futures are awaited at once, the
//! chain has branches.

mod chain;

use std::collections::{BTreeMap, BTreeSet};

use dmd_analyze::short_type_name;
use heap_graph::dominators::retained_by_groups;
use heap_graph::{DominatorTree, NodeId, NodeIndex};

use crate::debug_info::{DebugInfo, EnumVariant, TypeId};
use crate::infer::TypedHeap;
use crate::memory::MemorySource;
use chain::{FutureChain, TaskFinder};

/// A future in a chain, and its current position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitedFuture {
    /// The function's name; for a block, a name such as `app::main::{async_block#0}`.
    pub future: String,
    /// The state, as the compiler names it: `Unresumed` before the first poll, `Suspend0` at the first `await`,
    /// `Returned`, `Panicked`.
    pub state: String,
    /// The file and the line of the `await`, or of the start or end of the function. `None` if unknown.
    pub place: Option<(String, u32)>,
    /// The file and the line of the start of the function; `None` if unknown. The `await` of a macro is in the
    /// macro's file.
    pub start: Option<(String, u32)>,
}

/// The tasks with the same chain of futures at the same positions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskRow {
    /// The chain: the task's own future, the future that it awaits, and so on.
    pub awaits: Vec<AwaitedFuture>,
    /// The type of the future that the last coroutine awaits, if that future is not a coroutine. For several futures,
    /// the type that contains them.
    pub waits_for: Option<String>,
    /// The futures that the last coroutine awaits at once, such as the futures of `join!` and `select!`, sorted by
    /// name.
    pub branches: Vec<TaskBranch>,
    /// The number of tasks.
    pub tasks: u64,
    /// The usable bytes of the blocks that contain the tasks' futures.
    pub bytes: u64,
    /// The bytes of these blocks and of all blocks that only they keep alive, each byte once.
    pub retained_bytes: u64,
}

/// Futures at the same position, among several futures that one future awaits at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskBranch {
    /// The chain, as for a task; empty for a future that is not a coroutine.
    pub awaits: Vec<AwaitedFuture>,
    /// The type of the future that the last coroutine awaits, as in [`TaskRow::waits_for`].
    pub waits_for: Option<String>,
    /// The futures that the last coroutine awaits at once, as in [`TaskRow::branches`].
    pub branches: Vec<Self>,
    /// The number of these futures in all tasks of the row.
    pub count: u64,
}

/// The tasks of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapTasks {
    /// The rows, ordered by retained bytes, the largest first, then by number and chain.
    pub rows: Vec<TaskRow>,
    /// The number of all tasks.
    pub tasks: u64,
    /// The usable bytes of the blocks that contain the tasks.
    pub bytes: u64,
    /// The bytes of these blocks and of all blocks that only they keep alive.
    pub retained_bytes: u64,
}

impl TypedHeap<'_> {
    /// Finds the async tasks and other futures of `async` functions and blocks on the heap, grouped by their current
    /// `await`. A future that another future awaits is part of that future's chain. `memory` must be the memory
    /// passed to [`TypedHeap::new`]. `tree` must be the tree of the graph that [`TypedHeap::graph`] returns.
    pub fn tasks(&self, memory: &dyn MemorySource, tree: &DominatorTree<'_>) -> HeapTasks {
        let info = self.walk.info();
        let mut finder = TaskFinder::new(self, memory);
        let mut groups: BTreeMap<FutureChain, (Vec<usize>, Vec<u64>)> = BTreeMap::new();
        let mut chains = Vec::new();
        for coroutine in finder.all() {
            chains.push((coroutine.block, finder.chain(coroutine)));
        }
        for (block, (chain, counts)) in chains {
            if !finder.awaited.contains(&block) {
                let (blocks, sums) = groups.entry(chain).or_default();
                blocks.push(block);
                add(sums, &counts);
            }
        }
        let mut tasks = HeapTasks::default();
        let mut members = Vec::new();
        for (number, (chain, (blocks, counts))) in groups.iter().enumerate() {
            let bytes = self.usable(blocks);
            let TaskBranch { awaits, waits_for, branches, .. } = branch(info, chain, 0, &mut counts.iter());
            tasks.rows.push(TaskRow {
                awaits,
                waits_for,
                branches,
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
        tasks.bytes =
            self.usable(&groups.values().flat_map(|(blocks, _)| blocks).copied().collect::<Vec<_>>());
        tasks.tasks = tasks.rows.iter().map(|row| row.tasks).sum();
        tasks.rows.sort_by(|one, other| {
            let sizes = |row: &TaskRow| (row.retained_bytes, row.tasks);
            sizes(other)
                .cmp(&sizes(one))
                .then_with(|| chain_names(&one.awaits).cmp(&chain_names(&other.awaits)))
        });
        tasks
    }

    /// The usable bytes of blocks. Each block counts once, even if `blocks` contains it several times.
    fn usable(&self, blocks: &[usize]) -> u64 {
        let all: BTreeSet<usize> = blocks.iter().copied().collect();
        all.into_iter().map(|block| self.blocks[block].usable).sum()
    }
}

/// The names and places of the futures of a chain.
fn chain_names(awaits: &[AwaitedFuture]) -> Vec<(String, Option<(String, u32)>)> {
    awaits.iter().map(|one| (one.future.clone(), one.place.clone())).collect()
}

/// Adds the counts of an equal chain.
fn add(sums: &mut Vec<u64>, counts: &[u64]) {
    sums.resize(counts.len(), 0);
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// A chain and its branches. `counts` contains the counts of the branches; each count precedes the counts of its own
/// branches.
fn branch<'c>(
    info: &DebugInfo,
    chain: &FutureChain,
    count: u64,
    counts: &mut impl Iterator<Item = &'c u64>,
) -> TaskBranch {
    let branches = chain.branches.iter().map(|chain| {
        let count = counts.next().copied().unwrap_or_default();
        branch(info, chain, count, counts)
    });
    let mut branches: Vec<TaskBranch> = branches.collect();
    // The chains are in the order of type ids, which differs from build to build.
    branches.sort_by_cached_key(|branch| (chain_names(&branch.awaits), branch.waits_for.clone()));
    TaskBranch {
        awaits: chain.futures.iter().map(|(of, variant)| future(info, *of, *variant)).collect(),
        waits_for: chain.waits_for.map(|of| name(info, of)),
        branches,
        count,
    }
}

fn variant(info: &DebugInfo, of: TypeId, index: usize) -> Option<&EnumVariant> {
    info.get(of).variants.as_deref()?.all.get(index)
}

fn future(info: &DebugInfo, of: TypeId, index: usize) -> AwaitedFuture {
    let variant = variant(info, of, index);
    let state = variant.and_then(|variant| info.type_at(variant.members.first()?.of));
    let state = state.and_then(|state| info.name(state).rsplit("::").next()).unwrap_or_default();
    let place = |variant: Option<&EnumVariant>| {
        let (file, line) = variant?.place?;
        Some((info.text(file).to_owned(), line))
    };
    // The first state is the state before the first poll.
    let start = place(self::variant(info, of, 0));
    AwaitedFuture { future: name(info, of), state: state.to_owned(), place: place(variant), start }
}

/// The name of the type. For the future of a function, it is the function's name.
fn name(info: &DebugInfo, of: TypeId) -> String {
    short_type_name(info.name(of)).replace("::{async_fn#0}", "")
}
