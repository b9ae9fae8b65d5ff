//! Several numbers from one walk: requested bytes, usable bytes and blocks.

use core::fmt;
use core::ops::{Add, AddAssign};

use crate::allocator::{self, AskUsableSize, DeclaredAllocator};
use crate::engine_abi::BlockSizes;

use super::block::WalkedBlock;
use super::malloc_size_of::MallocSizeOf;
use super::ops::MallocSizeOfOps;
use super::reading::{Reading, SealedReading, WalkObserver};
use super::size_source::usable_around;
use super::walk_state::WalkState;

/// The heap that a value owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SizeSummary {
    /// The bytes that the program requested.
    pub asked: usize,
    /// The bytes that the allocator provided. If the usable size of a block is unknown, its requested size counts. This
    /// applies to all blocks if the program declares no allocator ([`global_allocator!`](crate::global_allocator)).
    pub usable: usize,
    /// The number of blocks.
    pub blocks: usize,
}

impl SizeSummary {
    /// The provided bytes beyond the requested bytes: allocators round sizes up.
    pub fn slop(&self) -> usize {
        self.usable.saturating_sub(self.asked)
    }
}

impl AddAssign for SizeSummary {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        // Saturates, since an impl may name blocks that the process does not have.
        self.asked = self.asked.saturating_add(other.asked);
        self.usable = self.usable.saturating_add(other.usable);
        self.blocks += other.blocks;
    }
}

impl Add for SizeSummary {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl fmt::Display for SizeSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes ({} slop) in {} blocks", self.usable, self.slop(), self.blocks)
    }
}

/// The reading of [`size_summary`]. It counts usable bytes if the program declares its allocator, otherwise computed
/// bytes. It also counts the requested bytes and the number of blocks.
#[derive(Debug)]
pub struct SummaryReading {
    usable_size: Option<AskUsableSize>,
    /// The sizes from an engine, if one is connected.
    sizes: Option<BlockSizes>,
    sum: SizeSummary,
    state: WalkState,
}

impl SummaryReading {
    /// A reading without blocks.
    pub fn new() -> Self {
        Self {
            usable_size: allocator::declared().map(DeclaredAllocator::usable_size),
            sizes: BlockSizes::from_engine(),
            sum: SizeSummary::default(),
            state: WalkState::default(),
        }
    }

    /// The sum of all blocks so far.
    pub fn summary(&self) -> SizeSummary {
        self.sum
    }
}

impl Default for SummaryReading {
    fn default() -> Self {
        Self::new()
    }
}

impl SealedReading for SummaryReading {}

#[allow(unsafe_code, reason = "calls the declared allocator")]
impl WalkObserver for SummaryReading {
    #[inline]
    unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        let asked = block.layout.size();
        let usable = match self.usable_size {
            // SAFETY: the caller guarantees a live block of the global allocator with this layout, and `declared`
            // returns only the global allocator.
            Some(usable_size) => unsafe { usable_size.ask(block.pointer, block.layout) },
            None => asked,
        };
        self.sum += SizeSummary { asked, usable, blocks: 1 };
        usable
    }

    #[inline]
    fn enclosing(&mut self, block: WalkedBlock) -> usize {
        let asked = block.layout.size();
        let usable = if self.usable_size.is_some() { usable_around(&block, self.sizes) } else { asked };
        self.sum += SizeSummary { asked, usable, blocks: 1 };
        usable
    }

    fn stated(&mut self, bytes: usize) -> usize {
        self.sum += SizeSummary { asked: bytes, usable: bytes, blocks: 0 };
        bytes
    }

    #[inline]
    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }
}

impl Reading for SummaryReading {
    const NAMES: bool = false;

    fn erase(&mut self) -> &mut dyn WalkObserver {
        self
    }
}

/// Measures the heap that `value` owns in one walk: requested bytes, usable bytes and blocks.
///
/// `usable` equals [`malloc_size_of`](crate::malloc_size_of()). Bytes that a manual impl adds without naming a block
/// count as requested bytes, but not as a block.
///
/// ```
/// let names = vec![String::from("ab"), String::from("cde")];
/// let summary = memory_reporter::measure::size_summary(&names);
/// assert_eq!(summary.asked, 2 * size_of::<String>() + 5);
/// assert_eq!(summary.blocks, 3);
/// assert_eq!(summary.usable, summary.asked + summary.slop());
/// ```
pub fn size_summary<T: MallocSizeOf + ?Sized>(value: &T) -> SizeSummary {
    let mut ops = MallocSizeOfOps::new(SummaryReading::new());
    let bytes = value.size_of_excluding_this(&mut ops);
    ops.into_reading().sum.settled(bytes)
}

impl SizeSummary {
    /// The sum of the blocks, adjusted to `bytes`, the result of the walk.
    pub(crate) fn settled(self, bytes: usize) -> Self {
        let slop = self.slop();
        let asked = match bytes.checked_sub(self.usable) {
            Some(unnamed) => self.asked.saturating_add(unnamed),
            // The walk returned fewer bytes than its blocks have: an impl has named blocks without adding their bytes.
            // It is unknown which blocks, so the slop of all blocks is subtracted.
            None => bytes.saturating_sub(slop),
        };
        Self { asked, usable: bytes, ..self }
    }
}
