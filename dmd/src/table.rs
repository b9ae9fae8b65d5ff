//! The live blocks, indexed by address: a word for each 16 bytes of heap, touched only where blocks are.
//!
//! No lock: a block is recorded by one store, after it was handed out, and forgotten by one store, before
//! it is freed, so each word has one writer at a time, but for the mark bit, which is set by exchange. An
//! allocator that aligns to less than 16 gets a plane of the table for each remainder modulo 16.
//!
//! The block around an address is found in a bounded number of looks, however empty the heap before it is:
//! see [`around`].

mod around;
#[cfg(test)]
mod tests;

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::memory;
use crate::trace_tree::TraceId;

/// What is known of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Bytes that were asked for.
    pub(crate) requested: usize,
    /// Usable bytes beyond those.
    pub(crate) slop: usize,
    pub(crate) trace: TraceId,
    /// Stands for all small blocks since the last of its kind.
    pub(crate) sampled: bool,
    pub(crate) marked: bool,
}

impl Block {
    pub(crate) fn usable(&self) -> usize {
        self.requested.saturating_add(self.slop)
    }
}

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Start(Block),
    /// Of a block that starts at this address.
    Inside(usize, Block),
    /// A block started here.
    Freed,
    Nothing,
}

// A word: tag 2, wide 1, sampled 1, marked 1, trace 25, slop 12, requested 22.
const TAG: u64 = 0b11;
const LIVE: u64 = 0b01;
const FREED: u64 = 0b10;
/// Not a block: one of the two words behind a wide one, a size each.
const SIZE: u64 = 0b11;
const WIDE: u64 = 1 << 2;
const SAMPLED: u64 = 1 << 3;
const MARKED: u64 = 1 << 4;
const TRACE_SHIFT: u32 = 5;
const TRACE_BITS: u32 = 25;
const SLOP_SHIFT: u32 = TRACE_SHIFT + TRACE_BITS;
const SLOP_BITS: u32 = 12;
const REQUESTED_SHIFT: u32 = SLOP_SHIFT + SLOP_BITS;
const REQUESTED_BITS: u32 = 22;

/// The largest trace that a word can name.
pub(crate) const MAX_TRACE: u32 = (1 << TRACE_BITS) - 1;

/// So often a wide block is read that others change meanwhile.
const TRIES: usize = 32;

const GRAIN_BITS: u32 = 4;
/// Bytes of heap in a leaf: a megabyte, so that one maps half of that.
const LEAF_BITS: u32 = 20;
const MIDDLE_BITS: u32 = 35;
const ADDRESS_BITS: u32 = 48;
const LEAF_WORDS: usize = 1 << (LEAF_BITS - GRAIN_BITS);
const MIDDLES: usize = 1 << (MIDDLE_BITS - LEAF_BITS);
const ROOTS: usize = 1 << (ADDRESS_BITS - MIDDLE_BITS);
const PLANES: usize = 1 << GRAIN_BITS;

/// All zero at first, as the other parts.
struct Leaf {
    words: [AtomicU64; LEAF_WORDS],
    starts: around::InLeaf,
}

struct Middle {
    leaves: [AtomicPtr<Leaf>; MIDDLES],
    starts: around::InMiddle,
}

type Root = [AtomicPtr<Middle>; ROOTS];

pub(crate) struct Table {
    /// Of blocks at multiples of 16, which are all blocks of a C library.
    root: Root,
    planes: [AtomicPtr<Root>; PLANES],
    mapped: AtomicUsize,
    /// Usable bytes of the largest block that ever was.
    largest: AtomicUsize,
}

impl Table {
    pub(crate) const fn new() -> Self {
        Self {
            root: [const { AtomicPtr::new(null_mut()) }; ROOTS],
            planes: [const { AtomicPtr::new(null_mut()) }; PLANES],
            mapped: AtomicUsize::new(0),
            largest: AtomicUsize::new(0),
        }
    }

    /// Bytes mapped for it.
    pub(crate) fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Relaxed)
    }

    /// Bytes of it that are backed by memory.
    pub(crate) fn touched(&self) -> usize {
        const PAGE: usize = 4096;
        let mut pages = 0;
        self.for_each_leaf(|_, leaf| {
            let mut resident = [0u8; size_of::<Leaf>().div_ceil(PAGE)];
            // SAFETY: a whole mapping, and a byte for each of its pages.
            let failed = unsafe {
                libc::mincore(
                    core::ptr::from_ref(leaf).cast_mut().cast(),
                    size_of::<Leaf>(),
                    resident.as_mut_ptr(),
                )
            };
            if failed == 0 {
                pages += resident.iter().filter(|page| **page & 1 == 1).count();
            }
        });
        pages * PAGE
    }

    /// Records a block; false if there is no memory to do so.
    #[inline]
    pub(crate) fn insert(&self, address: usize, block: Block) -> bool {
        let Some(word) = self.word(address).or_else(|| self.make_word(address)) else { return false };
        let mut value = LIVE | u64::from(block.trace.0) << TRACE_SHIFT;
        if block.sampled {
            value |= SAMPLED;
        }
        if block.requested < 1 << REQUESTED_BITS && block.slop < 1 << SLOP_BITS {
            value |= (block.requested as u64) << REQUESTED_SHIFT | (block.slop as u64) << SLOP_SHIFT;
        } else {
            value |= WIDE;
            for (size, offset) in [(block.requested, 16), (block.slop, 32)] {
                let Some(word) = self.word(address + offset).or_else(|| self.make_word(address + offset))
                else {
                    return false;
                };
                word.store((size as u64) << 2 | SIZE, Ordering::Relaxed);
            }
        }
        word.store(value, Ordering::Release);
        if block.usable() >= around::LARGE {
            self.note_start(address, block.usable());
        }
        true
    }

    /// Begins to fetch the word of a block that is about to be recorded: it is far away, as all of the table,
    /// and the stack is walked meanwhile.
    #[inline(always)]
    pub(crate) fn prefetch(&self, address: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Some(word) = self.word(address) {
            // SAFETY: a hint, which changes nothing.
            unsafe { core::arch::asm!("prefetchw [{}]", in(reg) word, options(nostack, preserves_flags)) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }

    /// Forgets the block that starts here and tells what it was.
    #[inline]
    pub(crate) fn remove(&self, address: usize) -> Option<Block> {
        let word = self.word(address)?;
        let value = word.load(Ordering::Relaxed);
        if value & TAG != LIVE {
            return None;
        }
        let block = self.block(address, value);
        word.store(FREED, Ordering::Relaxed);
        Some(block)
    }

    /// Forgets what starts here without looking at it, which costs no wait for memory.
    #[inline(always)]
    pub(crate) fn erase(&self, address: usize) {
        if let Some(word) = self.word(address) {
            word.store(FREED, Ordering::Relaxed);
        }
    }

    /// Sets the mark bit and tells whether it was not set before; `None` if no block starts here.
    pub(crate) fn mark(&self, address: usize) -> Option<bool> {
        let word = self.word(address)?;
        let before = word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |value| {
                (value & TAG == LIVE).then_some(value | MARKED)
            })
            .ok()?;
        Some(before & MARKED == 0)
    }

    /// Takes the mark bit away.
    pub(crate) fn unmark(&self, address: usize) {
        if let Some(word) = self.word(address) {
            // Fails if the block was freed meanwhile, and then has no mark.
            let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |value| {
                (value & TAG == LIVE).then_some(value & !MARKED)
            });
        }
    }

    /// The live block that starts here.
    pub(crate) fn get(&self, address: usize) -> Option<Block> {
        self.read(address, self.word(address)?)
    }

    /// The live block of a word. Another thread may free it meanwhile, and another come to its place: of a wide one all
    /// words are read until they are of one block.
    #[inline]
    fn read(&self, address: usize, word: &AtomicU64) -> Option<Block> {
        let mut read = None;
        for _ in 0..TRIES {
            let value = word.load(Ordering::Acquire);
            if value & TAG != LIVE {
                return None;
            }
            let block = self.block(address, value);
            if value & WIDE == 0 {
                return Some(block);
            }
            // Sizes are written before the word is. Two blocks of one stack have the same word.
            let are_there = [16, 32].map(|offset| self.value(address + offset) & TAG == SIZE) == [true; 2];
            let same =
                word.load(Ordering::Acquire) == value && self.size(address + 16) == block.requested as u64;
            if are_there && same {
                return Some(block);
            }
            read = Some(block);
        }
        read
    }

    /// What lies at an address: the start of a live block, the inside of one, or nothing.
    pub(crate) fn find(&self, address: usize) -> Found {
        if let Some(block) = self.get(address) {
            return Found::Start(block);
        }
        match self.around(address) {
            Some((start, block)) => Found::Inside(start, block),
            None if self.value(address) & TAG == FREED => Found::Freed,
            None => Found::Nothing,
        }
    }

    /// Calls `each` for every live block, in order of addresses within a plane.
    pub(crate) fn for_each(&self, mut each: impl FnMut(usize, Block)) {
        self.for_each_word(|address, word| {
            if let Some(block) = self.read(address, word) {
                each(address, block);
            }
        });
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.for_each_word(|_, word| {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        });
    }

    fn for_each_word(&self, mut each: impl FnMut(usize, &AtomicU64)) {
        self.for_each_leaf(|start, leaf| {
            for (index, word) in leaf.words.iter().enumerate() {
                each(start + (index << GRAIN_BITS), word);
            }
        });
    }

    fn for_each_leaf(&self, mut each: impl FnMut(usize, &Leaf)) {
        for plane in 0..PLANES {
            let Some(root) = self.root(plane) else { continue };
            for (high, middle) in root.iter().enumerate() {
                let middle = middle.load(Ordering::Acquire);
                if middle.is_null() {
                    continue;
                }
                // SAFETY: middles are never unmapped.
                for (low, leaf) in unsafe { &*middle }.leaves.iter().enumerate() {
                    let leaf = leaf.load(Ordering::Acquire);
                    if leaf.is_null() {
                        continue;
                    }
                    // SAFETY: leaves are never unmapped.
                    each((high << MIDDLE_BITS) + (low << LEAF_BITS) + plane, unsafe { &*leaf });
                }
            }
        }
    }

    fn block(&self, address: usize, value: u64) -> Block {
        let (requested, slop) = if value & WIDE == 0 {
            (
                value >> REQUESTED_SHIFT & ((1 << REQUESTED_BITS) - 1),
                value >> SLOP_SHIFT & ((1 << SLOP_BITS) - 1),
            )
        } else {
            (self.size(address + 16), self.size(address + 32))
        };
        Block {
            requested: requested as usize,
            slop: slop as usize,
            trace: trace(value),
            sampled: value & SAMPLED != 0,
            marked: value & MARKED != 0,
        }
    }

    /// Of a wide block. It may be gone, and another one lie there.
    fn size(&self, address: usize) -> u64 {
        let value = self.value(address);
        if value & TAG == SIZE { value >> 2 } else { 0 }
    }

    fn value(&self, address: usize) -> u64 {
        self.word(address).map_or(0, |word| word.load(Ordering::Acquire))
    }

    #[inline]
    fn root(&self, plane: usize) -> Option<&Root> {
        if plane == 0 {
            return Some(&self.root);
        }
        let root = self.planes[plane].load(Ordering::Acquire);
        // SAFETY: null, or a root that is never unmapped.
        unsafe { root.as_ref() }
    }

    #[inline]
    fn middle(&self, address: usize) -> Option<&Middle> {
        let middle = self.root(address % PLANES)?.get(address >> MIDDLE_BITS)?.load(Ordering::Acquire);
        // SAFETY: null, or a middle that is never unmapped.
        unsafe { middle.as_ref() }
    }

    #[inline]
    fn leaf(&self, address: usize) -> Option<&Leaf> {
        let leaf = self.middle(address)?.leaves[address >> LEAF_BITS & (MIDDLES - 1)].load(Ordering::Acquire);
        // SAFETY: null, or a leaf that is never unmapped.
        unsafe { leaf.as_ref() }
    }

    #[inline]
    fn word(&self, address: usize) -> Option<&AtomicU64> {
        Some(&self.leaf(address)?.words[address >> GRAIN_BITS & (LEAF_WORDS - 1)])
    }

    #[cold]
    fn make_word(&self, address: usize) -> Option<&AtomicU64> {
        if address >> ADDRESS_BITS != 0 {
            return None;
        }
        let plane = address % PLANES;
        let root = if plane == 0 { &self.root } else { self.make(&self.planes[plane])? };
        let middle = self.make(&root[address >> MIDDLE_BITS])?;
        let leaf = self.make(&middle.leaves[address >> LEAF_BITS & (MIDDLES - 1)])?;
        Some(&leaf.words[address >> GRAIN_BITS & (LEAF_WORDS - 1)])
    }

    /// The part behind a pointer, mapped by whoever comes first.
    fn make<T>(&self, place: &AtomicPtr<T>) -> Option<&T> {
        let known = place.load(Ordering::Acquire);
        if !known.is_null() {
            // SAFETY: parts are never unmapped.
            return Some(unsafe { &*known });
        }
        let fresh = memory::map(size_of::<T>());
        if fresh.is_null() {
            return None;
        }
        match place.compare_exchange(null_mut(), fresh.cast(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                self.mapped.fetch_add(size_of::<T>(), Ordering::Relaxed);
                // SAFETY: zeroed pages are null pointers and empty words.
                Some(unsafe { &*fresh.cast::<T>() })
            }
            Err(other) => {
                // SAFETY: mapped above, and seen by nobody.
                unsafe { memory::unmap(fresh, size_of::<T>()) };
                // SAFETY: parts are never unmapped.
                Some(unsafe { &*other })
            }
        }
    }
}

fn trace(value: u64) -> TraceId {
    TraceId((value >> TRACE_SHIFT & u64::from(MAX_TRACE)) as u32)
}
