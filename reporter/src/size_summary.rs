//! One walk, several numbers: bytes asked for, usable bytes and blocks.

use core::fmt;
use core::ops::{Add, AddAssign};

use crate::allocator::{self, AskUsableSize, DeclaredAllocator};
use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::{Block, Observe, Reading};
use crate::walk_state::WalkState;

/// What a value owns on the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SizeSummary {
    /// Bytes asked of the allocator.
    pub asked: usize,
    /// Bytes that the allocator gave; those asked for where it is not declared
    /// ([`global_allocator!`](crate::global_allocator)) or cannot be asked about a block.
    pub usable: usize,
    /// The number of blocks.
    pub blocks: usize,
}

impl SizeSummary {
    /// Bytes given beyond those asked for: the allocator's rounding.
    pub fn slop(&self) -> usize {
        self.usable.saturating_sub(self.asked)
    }
}

impl AddAssign for SizeSummary {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.usable += other.usable;
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

/// The reading of [`size_summary`]: usable bytes where the allocator is declared, else computed,
/// and the bytes asked for and the number of blocks beside them.
#[derive(Debug)]
pub struct Summed {
    usable_size: Option<AskUsableSize>,
    sum: SizeSummary,
    state: WalkState,
}

impl Summed {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self {
            usable_size: allocator::declared().map(DeclaredAllocator::usable_size),
            sum: SizeSummary::default(),
            state: WalkState::default(),
        }
    }

    /// The blocks seen so far.
    pub fn summary(&self) -> SizeSummary {
        self.sum
    }
}

impl Default for Summed {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(unsafe_code, reason = "asks the declared allocator")]
impl Observe for Summed {
    #[inline]
    unsafe fn block(&mut self, block: Block) -> usize {
        let asked = block.layout.size();
        let usable = match self.usable_size {
            // SAFETY: the caller promises a live block of the global allocator with this layout,
            // and the declared allocator is the global one.
            Some(usable_size) => unsafe { usable_size.ask(block.pointer, block.layout) },
            None => asked,
        };
        self.sum += SizeSummary { asked, usable, blocks: 1 };
        usable
    }

    #[inline]
    fn enclosing(&mut self, block: Block) -> usize {
        let asked = block.layout.size();
        self.sum += SizeSummary { asked, usable: asked, blocks: 1 };
        asked
    }

    #[inline]
    fn state(&mut self) -> &mut WalkState {
        &mut self.state
    }
}

impl Reading for Summed {
    const NAMES: bool = false;

    fn erase(&mut self) -> &mut dyn Observe {
        self
    }
}

/// What `value` owns on the heap: bytes asked for, usable bytes, blocks; from one walk.
///
/// `usable` is what [`malloc_size_of`](crate::malloc_size_of()) gives. Bytes that a hand-written
/// impl adds without naming a block count as asked for, in no block.
///
/// ```
/// let names = vec![String::from("ab"), String::from("cde")];
/// let summary = memory_reporter::size_summary(&names);
/// assert_eq!(summary.asked, 2 * size_of::<String>() + 5);
/// assert_eq!(summary.blocks, 3);
/// assert_eq!(summary.usable, summary.asked + summary.slop());
/// ```
pub fn size_summary<T: MallocSizeOf + ?Sized>(value: &T) -> SizeSummary {
    let mut ops = MallocSizeOfOps::new(Summed::new());
    let bytes = value.size_of_excluding_this(&mut ops);
    ops.into_reading().sum.settled(bytes)
}

impl SizeSummary {
    /// The sum of blocks together with what a walk returned beyond them.
    pub(crate) fn settled(self, bytes: usize) -> Self {
        let slop = self.slop();
        let asked = match bytes.checked_sub(self.usable) {
            Some(unnamed) => self.asked + unnamed,
            // An impl left out some of the blocks that it named: of these no more is known.
            None => bytes.saturating_sub(slop),
        };
        Self { asked, usable: bytes, ..self }
    }
}
