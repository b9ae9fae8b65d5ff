//! One walk, several numbers: requested bytes, usable bytes and blocks.

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
    /// The bytes that the allocator provided; the requested ones if the program does not declare it
    /// ([`global_allocator!`](crate::global_allocator)), or for a block about which it cannot be asked.
    pub usable: usize,
    /// The number of blocks.
    pub blocks: usize,
}

impl SizeSummary {
    /// The provided bytes beyond the requested ones: the allocator rounds up.
    pub fn slop(&self) -> usize {
        self.usable.saturating_sub(self.asked)
    }
}

impl AddAssign for SizeSummary {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        // An impl may name blocks that the process does not have.
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

/// The reading of [`size_summary`]: usable bytes if the program declares its allocator, otherwise computed ones; and
/// the requested bytes and the number of blocks.
#[derive(Debug)]
pub struct SummaryReading {
    usable_size: Option<AskUsableSize>,
    /// With an engine.
    sizes: Option<BlockSizes>,
    sum: SizeSummary,
    state: WalkState,
}

impl SummaryReading {
    /// A reading that has seen no block.
    pub fn new() -> Self {
        Self {
            usable_size: allocator::declared().map(DeclaredAllocator::usable_size),
            sizes: BlockSizes::from_engine(),
            sum: SizeSummary::default(),
            state: WalkState::default(),
        }
    }

    /// The blocks seen so far.
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
            // SAFETY: the caller guarantees a live block of the global allocator with this layout, and `declared` gives
            // only the global allocator.
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

/// The heap that `value` owns: requested bytes, usable bytes and blocks, from one walk.
///
/// `usable` equals [`malloc_size_of`](crate::malloc_size_of()). Bytes that a hand-written impl adds without naming a
/// block count as requested, in no block.
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
    /// The sum of the blocks, and the bytes that a walk returned beyond them.
    pub(crate) fn settled(self, bytes: usize) -> Self {
        let slop = self.slop();
        let asked = match bytes.checked_sub(self.usable) {
            Some(unnamed) => self.asked.saturating_add(unnamed),
            // An impl has not added some of the blocks that it named: nothing says which.
            None => bytes.saturating_sub(slop),
        };
        Self { asked, usable: bytes, ..self }
    }
}
