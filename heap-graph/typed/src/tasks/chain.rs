//! Chains of futures: each future awaits the next. A future that awaits several futures at once has branches.
//!
//! `join!` and `select!` store the futures of their branches in the coroutine's state, and await a closure that
//! borrows them. `join` and `join_all` are futures that contain the branches' futures, inside or behind a pointer.
//! `FuturesUnordered` contains a list.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hashbrown::{HashMap, HashSet};

use crate::blocks::HeapBlock;
use crate::debug_info::{DebugInfo, TypeId};
use crate::infer::TypedHeap;
use crate::memory::{MemoryReader, MemorySource};
use crate::plan::PlanGoal;
use crate::views::is_same;
use crate::walk::{FoundPointer, FoundVariant, PointerTarget, TypedContents, ValueWalk};

/// The maximum number of futures in a chain.
const LONGEST: usize = 64;

/// The maximum depth of nested branches, and of the search for futures in futures.
const DEEPEST: u32 = 8;

/// The member of `tokio::select!` and `tokio::join!` that borrows the tuple of their futures.
const TUPLE: &str = "futures";

/// The start of the type of an entry in the list of `FuturesUnordered`.
const LIST: &str = "futures_util::stream::futures_unordered::task::Task<";
/// The member of `FuturesUnordered` that leads to the first entry.
const HEAD: &str = "head_all";
/// The member of an entry that leads to the next entry.
const NEXT: &str = "next_all";

/// The block that the clones of a `Shared` future share. It contains the future.
const SHARED: &str = "alloc::sync::ArcInner<futures_util::future::future::shared::Inner<";

/// A future in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockFuture {
    pub(super) block: usize,
    at: u64,
    of: TypeId,
    /// The index of a coroutine's variant; `None` for another future.
    state: Option<usize>,
}

/// A place in a block that may contain futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FuturePlace {
    block: usize,
    at: u64,
    of: TypeId,
    /// Whether the pointer that leads to the place has the name [`TUPLE`].
    named: bool,
}

/// A chain: coroutines with the indices of their variants. If the last coroutine awaits one future that is not a
/// coroutine, `waits_for` is that future's type. If the last coroutine awaits several futures, `branches` contains each
/// different chain of these futures once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FutureChain {
    pub(super) futures: Vec<(TypeId, usize)>,
    pub(super) waits_for: Option<TypeId>,
    pub(super) branches: Vec<Self>,
}

pub(super) struct TaskFinder<'h, 'i> {
    heap: &'h TypedHeap<'i>,
    reader: MemoryReader<'h>,
    coroutines: ValueWalk<'i>,
    pointers: ValueWalk<'i>,
    /// The futures of each block with futures, without futures inside of other futures.
    of_blocks: HashMap<usize, Vec<BlockFuture>>,
    /// The blocks with a future that another future awaits.
    pub(super) awaited: BTreeSet<usize>,
    /// The coroutines of the current chain: for each, its block, its start and its end in the block.
    above: Vec<(usize, u64, u64)>,
    /// The number of places that may still be examined. Damaged memory may lead in circles.
    left: usize,
}

impl<'h, 'i> TaskFinder<'h, 'i> {
    pub(super) fn new(heap: &'h TypedHeap<'i>, memory: &'h dyn MemorySource) -> Self {
        let walk = |wanted| ValueWalk::new(heap.walk.info(), heap.walk.bias, wanted);
        Self {
            heap,
            reader: MemoryReader::new(memory),
            coroutines: walk(PlanGoal::Coroutines),
            pointers: walk(PlanGoal::Pointers),
            of_blocks: HashMap::new(),
            awaited: BTreeSet::new(),
            above: Vec::new(),
            left: 0,
        }
    }

    /// Finds the coroutines of all blocks.
    pub(super) fn all(&mut self) -> Vec<BlockFuture> {
        let mut all = Vec::new();
        for block in 0..self.heap.blocks.len() {
            let Some(contents) = self.heap.contents[block] else { continue };
            if !self.coroutines.has_any(contents) {
                continue;
            }
            let HeapBlock { address, requested, .. } = self.heap.blocks[block];
            self.coroutines.block(self.reader.read(address, requested), contents);
            let found = self.outermost(block, 0);
            if !found.is_empty() {
                all.extend(found.iter().filter(|future| future.state.is_some()));
                self.of_blocks.insert(block, found);
            }
        }
        self.left = all.len().saturating_mul(64).saturating_add(1 << 16);
        all
    }

    /// The futures that the last walk found, without futures inside of other futures. The walk started at this position
    /// of the block.
    fn outermost(&self, block: usize, start: u64) -> Vec<BlockFuture> {
        let info = self.heap.walk.info();
        let mut all = Vec::new();
        let mut end = 0;
        let mut unfinished: Option<(u64, BlockFuture)> = None;
        for FoundVariant { of, at, variant, sure } in &self.coroutines.variants {
            if !sure || *at < end {
                continue;
            }
            let after = at.saturating_add(info.size(*of));
            let future = |at: u64, of, state| BlockFuture { block, at: start.saturating_add(at), of, state };
            all.extend(unfinished.take_if(|(end, _)| *end <= *at).map(|(_, future)| future));
            if info.is_coroutine(*of) {
                // The unfinished branch contains this coroutine, so the coroutine replaces the branch.
                unfinished = None;
                end = after;
                all.push(future(*at, *of, Some(*variant)));
            } else if let Some((offset, inside)) = info.unfinished(*of, *variant) {
                unfinished = Some((after, future(at.saturating_add(offset), inside, None)));
            } else {
                end = after;
            }
        }
        all.extend(unfinished.map(|(_, future)| future));
        all
    }

    /// The chain that starts at a coroutine, and the number of futures in each branch. Each number precedes the
    /// numbers of the branch's own branches.
    pub(super) fn chain(&mut self, coroutine: BlockFuture) -> (FutureChain, Vec<u64>) {
        self.above.clear();
        self.follow(coroutine, 0)
    }

    fn follow(&mut self, mut future: BlockFuture, depth: u32) -> (FutureChain, Vec<u64>) {
        let info = self.heap.walk.info();
        let mut chain = FutureChain::default();
        let before = self.above.len();
        let mut branches = Vec::new();
        loop {
            let Some(state) = future.state else {
                chain.waits_for = Some(info.same_as(future.of));
                break;
            };
            chain.futures.push((info.same_as(future.of), state));
            let end = future.at.saturating_add(info.size(future.of));
            self.above.push((future.block, future.at, end));
            let Some(place) = self.awaitee(future, state) else { break };
            if chain.futures.len() >= LONGEST {
                break;
            }
            let awaited = self.futures(place, 0);
            for one in awaited.iter().filter(|one| one.block != future.block && one.state.is_some()) {
                self.awaited.insert(one.block);
            }
            match awaited[..] {
                [only] => future = only,
                _ => {
                    chain.waits_for = Some(info.same_as(place.of));
                    branches = awaited;
                    break;
                }
            }
        }
        let mut by_chain: BTreeMap<FutureChain, Vec<u64>> = BTreeMap::new();
        for branch in branches.into_iter().filter(|_| depth < DEEPEST) {
            // In damaged memory, branches may lead back to each other.
            let Some(left) = self.left.checked_sub(1) else { break };
            self.left = left;
            let (of_branch, counts) = self.follow(branch, depth + 1);
            let sums = by_chain.entry(of_branch).or_default();
            super::add(sums, &[&[1], &counts[..]].concat());
        }
        self.above.truncate(before);
        let counts = by_chain.values().flatten().copied().collect();
        chain.branches = by_chain.into_keys().collect();
        (chain, counts)
    }

    /// The place in a coroutine that contains the awaited future.
    fn awaitee(&self, coroutine: BlockFuture, state: usize) -> Option<FuturePlace> {
        let info = self.heap.walk.info();
        let state = super::variant(info, coroutine.of, state)?.members.first()?;
        let awaitee = info.member(info.type_at(state.of)?, "__awaitee")?;
        let at = coroutine.at.checked_add(state.offset)?.checked_add(awaitee.offset)?;
        Some(FuturePlace { block: coroutine.block, at, of: info.type_at(awaitee.of)?, named: false })
    }

    /// Returns the futures in a place. If the place contains no futures, returns the futures behind its pointers.
    fn futures(&mut self, place: FuturePlace, depth: u32) -> Vec<BlockFuture> {
        let info = self.heap.walk.info();
        let mut all = Vec::new();
        let mut known = HashSet::new();
        let mut waiting = VecDeque::from([place]);
        while let Some(place) = waiting.pop_front() {
            let Some(left) = self.left.checked_sub(1) else { break };
            self.left = left;
            if !known.insert(place) {
                continue;
            }
            if place.named && info.name(place.of).starts_with('(') && depth < DEEPEST {
                all.extend(self.members(place, depth));
                continue;
            }
            self.read(place);
            let inside = self.outermost(place.block, place.at);
            if inside.is_empty() {
                self.behind(place, depth, &mut all, &mut waiting);
            }
            all.extend(inside);
        }
        // A future that borrows from the awaiting coroutine may lead back to that coroutine.
        let is_new = |future: &BlockFuture| {
            let end = future.at.saturating_add(info.size(future.of));
            let has = |(block, from, to): &(usize, u64, u64)| {
                *block == future.block && future.at <= *from && *to <= end
            };
            !self.above.iter().any(has)
        };
        all.retain(is_new);
        let mut known = HashSet::new();
        all.retain(|future| known.insert((future.block, future.at, future.of)));
        // Replaces a future that is not a coroutine with the futures behind its pointers.
        let mut resolved = Vec::new();
        for future in all {
            let place = FuturePlace { block: future.block, at: future.at, of: future.of, named: false };
            let inside = match future.state {
                None if depth < DEEPEST => self.futures(place, depth + 1),
                _ => Vec::new(),
            };
            if inside.is_empty() {
                let of = if future.state.is_some() { future.of } else { self.behind_references(place) };
                resolved.push(BlockFuture { of, ..future });
            }
            resolved.extend(inside);
        }
        resolved
    }

    /// Reads only one place, since a block may contain millions of futures.
    fn read(&mut self, FuturePlace { block, at, of, .. }: FuturePlace) {
        let HeapBlock { address, requested, .. } = self.heap.blocks[block];
        let bytes = self.heap.walk.info().size(of).min(requested.saturating_sub(at));
        let bytes = self.reader.read(address.saturating_add(at), bytes);
        self.coroutines.part(bytes, of);
        self.pointers.part(bytes, of);
    }

    /// The futures of a tuple.
    fn members(&mut self, tuple: FuturePlace, depth: u32) -> Vec<BlockFuture> {
        let info = self.heap.walk.info();
        let mut all = Vec::new();
        for member in &info.get(tuple.of).members {
            let Some(of) = info.type_at(member.of) else { continue };
            let place = FuturePlace { at: tuple.at.saturating_add(member.offset), of, named: false, ..tuple };
            let inside = self.futures(place, depth + 1);
            // A branch of `join!` without a future is finished, and does not count.
            if inside.is_empty() && !info.is_maybe_done(of) {
                all.push(BlockFuture { block: place.block, at: place.at, of, state: None });
            }
            all.extend(inside);
        }
        all
    }

    /// The type of a future behind `Pin`, `&mut` and `Box`.
    fn behind_references(&mut self, mut place: FuturePlace) -> TypeId {
        const REFERENCES: &[&str] = &["&mut ", "core::pin::Pin<", "alloc::boxed::Box<"];
        let (heap, info) = (self.heap, self.heap.walk.info());
        for _ in 0..DEEPEST {
            if !REFERENCES.iter().any(|start| info.name(place.of).starts_with(start)) {
                break;
            }
            self.read(place);
            let [
                FoundPointer {
                    value,
                    target: PointerTarget::Start { contents: TypedContents::One(of), .. },
                    ..
                },
            ] = self.pointers.found[..]
            else {
                break;
            };
            place.of = of;
            let Some(block) = heap.index.find(&heap.blocks, value) else { break };
            (place.block, place.at) = (block, value - heap.blocks[block].address);
        }
        place.of
    }

    /// Follows the pointers of the last read place. Ignores a pointer to the header of another task.
    fn behind(
        &mut self,
        from: FuturePlace,
        depth: u32,
        all: &mut Vec<BlockFuture>,
        waiting: &mut VecDeque<FuturePlace>,
    ) {
        let (heap, info) = (self.heap, self.heap.walk.info());
        let found = core::mem::take(&mut self.pointers.found);
        for pointer in found.iter().filter(|pointer| pointer.sure && !pointer.weak) {
            let PointerTarget::Start { contents, .. } = pointer.target else { continue };
            let Some(block) = heap.index.find(&heap.blocks, pointer.value) else { continue };
            let HeapBlock { address, requested, .. } = heap.blocks[block];
            let at = pointer.value - address;
            let is_it = |known| is_same(info, known, contents) || !pointer.certain();
            if at == 0 && heap.contents[block].is_some_and(is_it) {
                let inside = self.of_blocks.get(&block).map_or(&[][..], Vec::as_slice);
                // The future of a `Shared` may be behind a pointer in the shared block.
                if let TypedContents::One(of) = contents
                    && inside.is_empty()
                    && info.name(of).starts_with(SHARED)
                {
                    waiting.push_back(FuturePlace { block, at, of, named: false });
                }
                let inside = &inside[..inside.len().min(self.left)];
                self.left -= inside.len();
                all.extend(inside);
                continue;
            }
            let TypedContents::One(of) = contents else { continue };
            if at.checked_add(info.size(of)).is_none_or(|end| end > requested) {
                continue;
            }
            let path = self.pointers.paths.text(pointer.path, info);
            let last = path.rsplit('.').next().unwrap_or_default();
            if last == HEAD && info.name(of).starts_with(LIST) {
                let list = self.list(pointer.value, of, depth);
                all.extend(list);
            } else if block == from.block {
                // The name of a closure's borrowed variable has this prefix.
                let named = last.trim_start_matches("_ref__") == TUPLE || (from.named && path.is_empty());
                waiting.push_back(FuturePlace { block, at, of, named });
            }
        }
        self.pointers.found = found;
    }

    /// The futures in a list.
    fn list(&mut self, mut entry: u64, of: TypeId, depth: u32) -> Vec<BlockFuture> {
        let (heap, info) = (self.heap, self.heap.walk.info());
        let [future, next] = ["future", NEXT].map(|name| info.member(of, name));
        let (Some(future), Some(next)) = (future, next) else { return Vec::new() };
        let Some(of_future) = info.type_at(future.of) else { return Vec::new() };
        let mut all = Vec::new();
        let mut known = HashSet::new();
        while known.insert(entry) && depth < DEEPEST && self.left > 0 {
            let Some(block) = heap.index.find(&heap.blocks, entry) else { break };
            let at = (entry - heap.blocks[block].address).saturating_add(future.offset);
            let place = FuturePlace { block, at, of: of_future, named: false };
            all.extend(self.futures(place, depth + 1));
            let Some(following) = entry.checked_add(next.offset).and_then(|at| self.reader.word(at)) else {
                break;
            };
            entry = following;
        }
        all
    }
}

impl DebugInfo {
    /// Whether a type is a branch of `join!`. Such a branch stores the result of its future.
    pub(crate) fn is_maybe_done(&self, of: TypeId) -> bool {
        self.name(of).contains("::maybe_done::MaybeDone<") && self.get(of).variants.is_some()
    }

    /// The position and the type of the future in an unfinished branch of `join!`; `None` for a finished branch.
    fn unfinished(&self, of: TypeId, variant: usize) -> Option<(u64, TypeId)> {
        let variant = self.get(of).variants.as_deref()?.all.get(variant)?.members.first()?;
        if self.text(variant.name) != "Future" {
            return None;
        }
        let future = self.get(self.type_at(variant.of)?).members.first()?;
        Some((variant.offset.saturating_add(future.offset), self.type_at(future.of)?))
    }
}
