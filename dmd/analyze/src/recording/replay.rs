//! The heap during a replay: its live blocks, its sums, and the effect of each event.
//!
//! An event may be wrong, or its partner may be missing from a damaged file. Then the replay counts the fault, and
//! keeps all blocks whose events agree.

use dmd_format::recording::RecordedBlock;
use hashbrown::hash_map::Entry;
use hashbrown::{DefaultHashBuilder, HashMap};

use super::event::{EventKind, TimedEvent};
use crate::error::AnalyzeError;

/// The thread of a block that is older than the recording.
pub(crate) const OLDER: u32 = u32::MAX;

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayedBlock {
    pub(crate) requested: u64,
    pub(crate) slop: u64,
    /// The tick at which the block got its current place and size.
    pub(crate) since: u64,
    pub(crate) stack: u32,
    /// The thread that allocated the block, or [`OLDER`].
    pub(crate) thread: u32,
    /// The number of the block's chain of moves, plus 1; 0 if the block never moved.
    chain: u32,
}

impl ReplayedBlock {
    pub(crate) fn usable(&self) -> u64 {
        self.requested.saturating_add(self.slop)
    }
}

/// The history of a block that was moved or resized at least once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MoveChain {
    /// The tick of the first allocation.
    pub(crate) born: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) moves: u64,
    /// Moves that changed the address.
    pub(crate) relocations: u64,
    /// The bytes that were copied by relocations.
    pub(crate) copied: u128,
    pub(crate) shrank: bool,
    /// The stack of the last move.
    pub(crate) stack: u32,
}

/// The end of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockEnd {
    pub(crate) tick: u64,
    /// The thread that freed or moved the block.
    pub(crate) thread: u32,
    /// The tick of the block's first allocation, before its moves.
    pub(crate) born: u64,
    /// Whether the block was moved or resized, so that it continues.
    pub(crate) moved: bool,
    /// Whether the thread freed or moved the block before its next allocation.
    pub(crate) temporary: bool,
}

/// Receives the results of a replay. Each method does nothing by default.
pub(crate) trait ReplayObserver {
    fn began(&mut self, _tick: u64, _block: &ReplayedBlock, _moved: bool) {}
    fn ended(&mut self, _block: &ReplayedBlock, _end: &BlockEnd) {}
    /// Called when the live blocks have more usable bytes than ever before.
    fn peaked(&mut self) {}
    /// Called when a moved block ends, and for the moved blocks that are alive at the end of the replay.
    fn chain(&mut self, _chain: &MoveChain) {}
}

impl ReplayObserver for () {}

/// The sums of live blocks at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapSums {
    /// Usable bytes.
    pub(crate) bytes: u128,
    pub(crate) requested: u128,
    pub(crate) blocks: u64,
    pub(crate) tick: u64,
    /// The number of events so far.
    pub(crate) event: u64,
}

/// Counts of events, and of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventCounts {
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) reallocations: u64,
    pub(crate) temporary: u64,
    /// Ends of blocks whose allocation is not in the file.
    pub(crate) unknown_ends: u64,
    /// Blocks that begin where another block is still live: the other block's end is missing.
    pub(crate) missing_ends: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ReplayedThread {
    /// The address of the block that the thread allocated last; 0 after the thread has freed or moved this block.
    last: u64,
    /// The block that the thread is moving, with its old address.
    moving: Option<(u64, ReplayedBlock)>,
}

/// The state of the heap after some events.
#[derive(Debug)]
pub(crate) struct HeapReplay {
    blocks: HashMap<u64, ReplayedBlock, DefaultHashBuilder>,
    threads: Vec<ReplayedThread>,
    chains: Vec<MoveChain>,
    /// The numbers of ended chains, for reuse.
    free: Vec<u32>,
    now: HeapSums,
    peak: HeapSums,
    counts: EventCounts,
    max_blocks: usize,
}

impl HeapReplay {
    pub(crate) fn new(max_blocks: usize) -> Self {
        Self {
            blocks: HashMap::default(),
            threads: Vec::new(),
            chains: Vec::new(),
            free: Vec::new(),
            now: HeapSums::default(),
            peak: HeapSums::default(),
            counts: EventCounts::default(),
            max_blocks,
        }
    }

    pub(crate) fn now(&self) -> HeapSums {
        self.now
    }

    /// The sums at the peak. If the heap reached the highest sum of usable bytes several times, the first time counts.
    pub(crate) fn peak(&self) -> HeapSums {
        self.peak
    }

    pub(crate) fn counts(&self) -> EventCounts {
        self.counts
    }

    /// The live blocks, in no order.
    pub(crate) fn live(&self) -> impl Iterator<Item = &ReplayedBlock> {
        self.blocks.values()
    }

    /// Adds a block that was alive when the recording started.
    pub(crate) fn add_older(
        &mut self,
        address: u64,
        RecordedBlock { requested, slop, stack }: RecordedBlock,
        observer: &mut impl ReplayObserver,
    ) -> Result<(), AnalyzeError> {
        let block = ReplayedBlock { requested, slop, since: 0, stack, thread: OLDER, chain: 0 };
        self.insert(0, address, block, false, observer)
    }

    /// Applies the next event.
    #[inline]
    pub(crate) fn apply(
        &mut self,
        event: &TimedEvent,
        observer: &mut impl ReplayObserver,
    ) -> Result<(), AnalyzeError> {
        self.now.event += 1;
        self.now.tick = self.now.tick.max(event.tick);
        let index = event.thread as usize;
        if index >= self.threads.len() {
            self.threads.resize(index + 1, ReplayedThread::default());
        }
        match event.kind {
            EventKind::Begin(RecordedBlock { requested, slop, stack }) => {
                let thread = &mut self.threads[index];
                thread.last = event.address;
                let moving = thread.moving.take();
                let mut block = ReplayedBlock {
                    requested,
                    slop,
                    since: event.tick,
                    stack,
                    thread: event.thread,
                    chain: 0,
                };
                match moving {
                    None => self.counts.allocations += 1,
                    Some((address, old)) => {
                        self.counts.reallocations += 1;
                        block.chain = self.continued(&old, address != event.address, &block);
                    }
                }
                self.insert(event.tick, event.address, block, moving.is_some(), observer)?;
            }
            EventKind::End | EventKind::EndByMove => self.end(event, observer),
            EventKind::Back(RecordedBlock { requested, slop, stack }) => {
                let old = self.threads[index].moving.take().filter(|(address, _)| *address == event.address);
                let unknown =
                    ReplayedBlock { requested, slop, since: event.tick, stack, thread: OLDER, chain: 0 };
                let block = old.map_or(unknown, |(_, block)| block);
                self.insert(event.tick, event.address, block, true, observer)?;
            }
        }
        Ok(())
    }

    /// Passes the chains of live blocks to an observer, at the end of a replay.
    pub(crate) fn finish(&mut self, observer: &mut impl ReplayObserver) {
        let mut live: Vec<u32> =
            self.blocks.values().map(|block| block.chain).filter(|chain| *chain > 0).collect();
        live.sort_unstable();
        live.iter().for_each(|chain| observer.chain(&self.chains[*chain as usize - 1]));
    }

    #[inline]
    fn insert(
        &mut self,
        tick: u64,
        address: u64,
        block: ReplayedBlock,
        moved: bool,
        observer: &mut impl ReplayObserver,
    ) -> Result<(), AnalyzeError> {
        if self.blocks.len() >= self.max_blocks {
            return Err(AnalyzeError::TooManyEntries(self.max_blocks));
        }
        self.now.bytes += u128::from(block.usable());
        self.now.requested += u128::from(block.requested);
        self.now.blocks += 1;
        match self.blocks.entry(address) {
            Entry::Vacant(place) => {
                place.insert(block);
            }
            Entry::Occupied(mut place) => {
                let old = place.insert(block);
                self.counts.missing_ends += 1;
                let end = BlockEnd { tick, thread: old.thread, born: 0, moved: false, temporary: false };
                self.ended(old, end, observer);
            }
        }
        observer.began(tick, &block, moved);
        if self.now.bytes > self.peak.bytes {
            self.peak = self.now;
            observer.peaked();
        }
        Ok(())
    }

    #[inline]
    fn end(&mut self, event: &TimedEvent, observer: &mut impl ReplayObserver) {
        let Some(block) = self.blocks.remove(&event.address) else {
            self.counts.unknown_ends += 1;
            return;
        };
        let thread = &mut self.threads[event.thread as usize];
        let temporary = thread.last == event.address;
        if temporary {
            thread.last = 0;
            self.counts.temporary += 1;
        }
        let moved = event.kind == EventKind::EndByMove;
        if moved {
            // If the thread is already moving a block, the event that ends that move is missing.
            let lost = thread.moving.replace((event.address, block)).filter(|(_, lost)| lost.chain > 0);
            self.free.extend(lost.map(|(_, lost)| lost.chain));
        } else {
            self.counts.frees += 1;
        }
        let end = BlockEnd { tick: event.tick, thread: event.thread, born: 0, moved, temporary };
        self.ended(block, end, observer);
    }

    #[inline]
    fn ended(&mut self, block: ReplayedBlock, end: BlockEnd, observer: &mut impl ReplayObserver) {
        self.now.bytes -= u128::from(block.usable());
        self.now.requested -= u128::from(block.requested);
        self.now.blocks -= 1;
        let mut born = block.since;
        if block.chain > 0 {
            let chain = &self.chains[block.chain as usize - 1];
            born = chain.born;
            if !end.moved {
                observer.chain(chain);
                self.free.push(block.chain);
            }
        }
        observer.ended(&block, &BlockEnd { born, ..end });
    }

    /// The number of the chain of a moved block.
    fn continued(&mut self, old: &ReplayedBlock, relocated: bool, new: &ReplayedBlock) -> u32 {
        let number = match old.chain {
            0 => {
                let first = MoveChain { born: old.since, first: old.requested, ..MoveChain::default() };
                match self.free.pop() {
                    Some(number) => {
                        self.chains[number as usize - 1] = first;
                        number
                    }
                    None => {
                        self.chains.push(first);
                        self.chains.len() as u32
                    }
                }
            }
            number => number,
        };
        let chain = &mut self.chains[number as usize - 1];
        chain.moves += 1;
        if relocated {
            chain.relocations += 1;
            chain.copied += u128::from(old.requested.min(new.requested));
        }
        chain.shrank |= new.requested < old.requested;
        chain.last = new.requested;
        chain.stack = new.stack;
        number
    }
}
