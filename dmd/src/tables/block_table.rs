//! The live blocks, indexed by address. The table has a word for each 16 bytes of heap, and touches its memory only
//! where blocks are. A stretch of heap with only large blocks has a few slots instead: see [`sparse`]. A word that
//! is not 0 takes precedence over a slot of the same address, so that nothing moves when words replace slots.
//!
//! The table has no lock. The engine records a block by one store, after the allocator handed it out, and forgets
//! it by one store, before it is freed. So each word has one writer at a time, except for its mark bit, which
//! threads set by exchange. An allocator that aligns to less than 16 gets a plane of the table for each remainder
//! modulo 16.
//!
//! [`around`] finds the block around an address in a bounded number of looks, however empty the heap before it is.

mod around;
mod place;
mod sampled_blocks;
mod sparse;
#[cfg(test)]
mod tests;

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::system::lock::Lock;
use crate::system::memory::{self, Pool};
use crate::tables::trace_id::TraceId;
use place::Place;
use sparse::{Chunk, Slot};

/// What the table knows about one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Bytes that the program asked for.
    pub(crate) requested: usize,
    /// Usable bytes beyond those.
    pub(crate) slop: usize,
    pub(crate) trace: TraceId,
    /// The block stands for all small blocks since the last sampled one.
    pub(crate) sampled: bool,
    pub(crate) marked: bool,
}

impl Block {
    pub(crate) fn usable(&self) -> usize {
        self.requested.saturating_add(self.slop)
    }
}

/// A block whose sizes fit a word, and that stands for itself alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    /// `None` if the sizes do not fit, or if the block stands for others.
    #[inline(always)]
    pub(crate) fn of(block: Block) -> Option<Self> {
        let word = packed(block);
        (word & (WIDE | SAMPLED) == 0).then_some(Self(word))
    }

    /// The bits, of which [`SPARE_BITS`](Self::SPARE_BITS) are 0.
    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits & !(Self::SPARE_BITS[0] | Self::SPARE_BITS[1]))
    }

    /// Bits that are always 0.
    pub(crate) const SPARE_BITS: [u64; 2] = [WIDE, SAMPLED];

    #[inline(always)]
    pub(crate) fn requested(self) -> usize {
        (self.0 >> REQUESTED_SHIFT & ((1 << REQUESTED_BITS) - 1)) as usize
    }

    #[inline(always)]
    pub(crate) fn trace(self) -> TraceId {
        TraceId((self.0 >> TRACE_SHIFT & u64::from(TraceId::MAX)) as u32)
    }

    #[inline(always)]
    fn slop(self) -> usize {
        (self.0 >> SLOP_SHIFT & ((1 << SLOP_BITS) - 1)) as usize
    }

    #[inline(always)]
    fn usable(self) -> usize {
        self.requested() + self.slop()
    }

    #[inline(always)]
    pub(crate) fn block(self) -> Block {
        Block {
            requested: self.requested(),
            slop: self.slop(),
            trace: self.trace(),
            sampled: self.0 & SAMPLED != 0,
            marked: self.0 & MARKED != 0,
        }
    }
}

/// The answer to a look at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Start(Block),
    /// Inside the block that starts at this address.
    Inside(usize, Block),
    /// The start of a block that was freed.
    Freed,
    Nothing,
}

// Bits of a word: tag 2, wide 1, sampled 1, marked 1, trace 25, slop 12, requested 22.
const TAG: u64 = 0b11;
const LIVE: u64 = 0b01;
const FREED: u64 = 0b10;
/// Not a block, but one of the two words behind the word of a wide block. Each has one size.
const SIZE: u64 = 0b11;
const WIDE: u64 = 1 << 2;
const SAMPLED: u64 = 1 << 3;
const MARKED: u64 = 1 << 4;
const TRACE_SHIFT: u32 = 5;
const SLOP_SHIFT: u32 = TRACE_SHIFT + TraceId::BITS;
const SLOP_BITS: u32 = 12;
const REQUESTED_SHIFT: u32 = SLOP_SHIFT + SLOP_BITS;
const REQUESTED_BITS: u32 = 22;
const _: () = assert!(REQUESTED_SHIFT + REQUESTED_BITS == 64);

/// A thread reads a wide block at most this many times while others change it.
const TRIES: usize = 32;

const GRAIN_BITS: u32 = 4;
/// Logarithm of the bytes of heap per leaf, which takes half as many. Small blocks use nearly all of a leaf, so
/// that the mapped bytes are about the resident ones.
const LEAF_BITS: u32 = 17;
const MIDDLE_BITS: u32 = 31;
const ADDRESS_BITS: u32 = 48;
const LEAF_WORDS: usize = 1 << (LEAF_BITS - GRAIN_BITS);
const LEAVES: usize = 1 << (MIDDLE_BITS - LEAF_BITS);
const ROOTS: usize = 1 << (ADDRESS_BITS - MIDDLE_BITS);
const PLANES: usize = 1 << GRAIN_BITS;

/// All zero at first, like the other parts of the table.
struct Leaf {
    words: [AtomicU64; LEAF_WORDS],
}

struct Middle {
    leaves: [AtomicPtr<Leaf>; LEAVES],
    sparse: [AtomicPtr<Chunk>; LEAVES],
    starts: around::InMiddle,
}

type Root = [AtomicPtr<Middle>; ROOTS];

pub(crate) struct Table {
    /// For blocks at multiples of 16, which are all blocks of a C library.
    root: Root,
    planes: [AtomicPtr<Root>; PLANES],
    starts: around::InTable,
    leaves: Pool<Leaf>,
    chunks: Pool<Chunk>,
    /// Held while a sampled block comes, or a page goes.
    pages: Lock,
    /// Bytes of roots and middles.
    mapped: AtomicUsize,
    /// Usable bytes of the largest block so far.
    largest: AtomicUsize,
}

impl Table {
    pub(crate) const fn new() -> Self {
        Self {
            root: [const { AtomicPtr::new(null_mut()) }; ROOTS],
            planes: [const { AtomicPtr::new(null_mut()) }; PLANES],
            starts: around::InTable::new(),
            leaves: Pool::new(),
            chunks: Pool::new(),
            pages: Lock::new(),
            mapped: AtomicUsize::new(0),
            largest: AtomicUsize::new(0),
        }
    }

    pub(crate) fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        each(&self.pages);
    }

    /// Bytes mapped for the table.
    pub(crate) fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Relaxed) + self.leaves.mapped() + self.chunks.mapped()
    }

    /// Resident bytes of the table, without those of middles.
    pub(crate) fn touched(&self) -> usize {
        const PAGE: usize = 4096;
        let mut pages = 0;
        self.for_each_stretch(|_, leaf, _| {
            let Some(leaf) = leaf else { return };
            let mut resident = [0u8; size_of::<Leaf>().div_ceil(PAGE)];
            // SAFETY: `leaf` is whole pages of a mapping, and `resident` has a byte for each of them.
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
        pages * PAGE + self.chunks.used()
    }

    /// Records a block; false if there is no memory to do so.
    #[inline]
    pub(crate) fn insert(&self, address: usize, block: Block) -> bool {
        let stored = match self.word(address) {
            Some(word) => self.store(address, word, block),
            None => self.insert_first(address, block),
        };
        if stored && block.usable() >= around::LARGE {
            self.note_start(address, block.usable());
        }
        stored
    }

    /// Records a block at an address that has no word.
    #[cold]
    fn insert_first(&self, address: usize, block: Block) -> bool {
        if block.usable() >= around::LARGE
            && let Some(slot) = self.make_slot(address)
        {
            slot.store(packed(block), block);
            return true;
        }
        self.make_word(address).is_some_and(|word| self.store(address, word, block))
    }

    #[inline]
    fn store(&self, address: usize, word: &AtomicU64, block: Block) -> bool {
        let value = packed(block);
        if value & WIDE != 0 {
            for (size, offset) in [(block.requested, 16), (block.slop, 32)] {
                let Some(word) = self.word(address + offset).or_else(|| self.make_word(address + offset))
                else {
                    return false;
                };
                word.store((size as u64) << 2 | SIZE, Ordering::Relaxed);
            }
        }
        word.store(value, Ordering::Release);
        true
    }

    /// Prefetches the word of a block that the engine is about to record. The word is rarely in a cache, since the
    /// table is large, and the engine walks the stack meanwhile.
    #[inline(always)]
    pub(crate) fn prefetch(&self, address: usize) {
        if let Some(word) = self.word(address) {
            memory::prefetch(word);
        }
    }

    /// Records a block where the table has room and no live block; otherwise returns false, and changes nothing.
    #[inline(always)]
    pub(crate) fn insert_word(&self, address: usize, word: Word) -> bool {
        let Some(place) = self.word(address) else { return false };
        let free = match place.load(Ordering::Relaxed) {
            0 => self.has_no_slots(address),
            value => value & TAG != LIVE,
        };
        if free && word.usable() < around::LARGE {
            place.store(word.0, Ordering::Release);
            return true;
        }
        false
    }

    /// Forgets the block that starts here and returns its word; `None`, and nothing changes, if its
    /// sizes do not fit a word, or if it stands for others.
    #[inline(always)]
    pub(crate) fn remove_word(&self, address: usize) -> Option<Word> {
        let place = self.word(address)?;
        let value = place.load(Ordering::Relaxed);
        if value & (TAG | WIDE | SAMPLED) != LIVE {
            return None;
        }
        place.store(FREED, Ordering::Relaxed);
        Some(Word(value))
    }

    /// Forgets the block that starts here and returns it.
    pub(crate) fn remove(&self, address: usize) -> Option<Block> {
        let place = self.find_place(address)?;
        let value = place.word().load(Ordering::Relaxed);
        if value & TAG != LIVE {
            return None;
        }
        let block = self.block(address, place, value);
        place.word().store(FREED, Ordering::Relaxed);
        Some(block)
    }

    /// Whether a live block starts here.
    #[inline]
    pub(crate) fn is_live(&self, address: usize) -> bool {
        self.find_place(address).is_some_and(|place| place.word().load(Ordering::Relaxed) & TAG == LIVE)
    }

    /// Sets the mark bit and returns whether it was clear before; `None` if no block starts here.
    pub(crate) fn mark(&self, address: usize) -> Option<bool> {
        let place = self.find_place(address)?;
        let marked = |value| (value & TAG == LIVE).then_some(value | MARKED);
        let before = place.word().fetch_update(Ordering::AcqRel, Ordering::Acquire, marked).ok()?;
        Some(before & MARKED == 0)
    }

    /// Clears the mark bit.
    pub(crate) fn unmark(&self, address: usize) {
        if let Some(place) = self.find_place(address) {
            // This fails if another thread freed the block meanwhile: then the block has no mark.
            let _ = place.word().fetch_update(Ordering::AcqRel, Ordering::Acquire, |value| {
                (value & TAG == LIVE).then_some(value & !MARKED)
            });
        }
    }

    /// The live block that starts here.
    pub(crate) fn get(&self, address: usize) -> Option<Block> {
        self.read(address, self.find_place(address)?)
    }

    /// The live block of a place. Another thread may free it meanwhile and record another one there. So the
    /// function reads the sizes of a wide block again until they match its word.
    #[inline]
    fn read(&self, address: usize, place: Place<'_>) -> Option<Block> {
        let mut read = None;
        for _ in 0..TRIES {
            let value = place.word().load(Ordering::Acquire);
            if value & TAG != LIVE {
                return None;
            }
            let block = self.block(address, place, value);
            if value & WIDE == 0 {
                return Some(block);
            }
            let (requested, slop) = (block.requested as u64, block.slop as u64);
            if fingerprint(requested, slop) == value >> SLOP_SHIFT {
                return Some(block);
            }
            read = Some(block);
        }
        read
    }

    /// Whether a live block starts here, has the address inside, or was freed here, in this order.
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
        self.for_each_place(|address, place| {
            if let Some(block) = self.read(address, place) {
                each(address, block);
            }
        });
    }

    /// Forgets all blocks.
    pub(crate) fn clear(&self) {
        self.for_each_place(|_, place| {
            if place.word().load(Ordering::Relaxed) != 0 {
                place.word().store(0, Ordering::Relaxed);
            }
        });
        // The first pass did not reach slots behind a word that was not 0.
        self.for_each_place(|_, place| place.word().store(0, Ordering::Relaxed));
    }

    /// Forgets all blocks, and gives the memory of their words back.
    pub(crate) fn release(&self) {
        self.clear();
        self.for_each_stretch(|_, leaf, _| {
            if let Some(leaf) = leaf {
                let (start, bytes) = (core::ptr::from_ref(leaf).cast_mut().cast(), size_of::<Leaf>());
                // SAFETY: whole pages of a private mapping without a file, which are zero from then on, as atomic words
                // without blocks are.
                unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) };
            }
        });
    }

    fn for_each_place<'t>(&'t self, mut each: impl FnMut(usize, Place<'t>)) {
        self.for_each_stretch(|start, leaf, slots| {
            let mut slots = sparse::in_order(slots).into_iter().flatten().peekable();
            for (index, word) in leaf.map_or(&[][..], |leaf| &leaf.words).iter().enumerate() {
                let slot = slots.next_if(|(at, _)| *at == index).map(|(_, slot)| slot);
                let word = Place::Word(word);
                each(start + (index << GRAIN_BITS), slot.map_or(word, |slot| word.or(slot)));
            }
            for (index, slot) in slots {
                each(start + (index << GRAIN_BITS), Place::Slot(slot));
            }
        });
    }

    /// Calls `each` for every stretch of heap that has a leaf or slots, or both.
    fn for_each_stretch<'t>(&'t self, mut each: impl FnMut(usize, Option<&'t Leaf>, Option<&'t Chunk>)) {
        for plane in 0..PLANES {
            let Some(root) = self.root(plane) else { continue };
            for (high, middle) in root.iter().enumerate() {
                // SAFETY: null, or a middle of `make`, and the table never unmaps one.
                let Some(middle) = (unsafe { middle.load(Ordering::Acquire).as_ref() }) else { continue };
                for (low, (leaf, chunk)) in middle.leaves.iter().zip(&middle.sparse).enumerate() {
                    // SAFETY: null, or a leaf of `make_word`, and the table never unmaps one.
                    let leaf = unsafe { leaf.load(Ordering::Acquire).as_ref() };
                    // SAFETY: null, or a chunk of `make_slot`, and the table never unmaps one.
                    let chunk = unsafe { chunk.load(Ordering::Acquire).as_ref() };
                    if leaf.is_some() || chunk.is_some() {
                        each((high << MIDDLE_BITS) + (low << LEAF_BITS) + plane, leaf, chunk);
                    }
                }
            }
        }
    }

    fn block(&self, address: usize, place: Place<'_>, value: u64) -> Block {
        let block = Word(value).block();
        if value & WIDE == 0 {
            return block;
        }
        let (requested, slop) = self.sizes(address, place).unwrap_or_default();
        Block { requested: requested as usize, slop: slop as usize, ..block }
    }

    /// Requested bytes and slop of a wide block. `None` if other blocks have overwritten them meanwhile.
    fn sizes(&self, address: usize, place: Place<'_>) -> Option<(u64, u64)> {
        let size = |address: usize| {
            let value = self.word(address)?.load(Ordering::Acquire);
            (value & TAG == SIZE).then_some(value >> 2)
        };
        match place {
            Place::Word(_) => Some((size(address + 16)?, size(address + 32)?)),
            Place::Slot(slot) => Some(slot.sizes()),
        }
    }

    fn value(&self, address: usize) -> u64 {
        self.find_place(address).map_or(0, |place| place.word().load(Ordering::Acquire))
    }

    /// The place where the block that starts here is recorded, or was.
    #[inline]
    fn find_place(&self, address: usize) -> Option<Place<'_>> {
        match self.word(address) {
            Some(word) if word.load(Ordering::Relaxed) != 0 => Some(Place::Word(word)),
            word => self.slot(address).map(Place::Slot).or(word.map(Place::Word)),
        }
    }

    /// Whether the stretch of heap around an address has no slots. It has a word for the address.
    #[inline(always)]
    fn has_no_slots(&self, address: usize) -> bool {
        self.middle(address)
            .is_some_and(|middle| middle.sparse[leaf_index(address)].load(Ordering::Acquire).is_null())
    }

    /// The slot of an address, if it has one.
    fn slot(&self, address: usize) -> Option<&Slot> {
        let first = self.middle(address)?.sparse[leaf_index(address)].load(Ordering::Acquire);
        // SAFETY: null, or a chunk of `make_slot`, and the table never unmaps one.
        unsafe { first.as_ref() }?.find(word_index(address))
    }

    /// The slot of an address, made if necessary; `None` if its stretch of heap has too many, or memory is short.
    fn make_slot(&self, address: usize) -> Option<&Slot> {
        let middle = self.make_middle(address)?;
        sparse::make(&middle.sparse[leaf_index(address)], word_index(address), &self.chunks)
    }

    #[inline]
    fn root(&self, plane: usize) -> Option<&Root> {
        if plane == 0 {
            return Some(&self.root);
        }
        let root = self.planes[plane].load(Ordering::Acquire);
        // SAFETY: null, or a root of `make`, and the table never unmaps one.
        unsafe { root.as_ref() }
    }

    #[inline]
    fn middle(&self, address: usize) -> Option<&Middle> {
        let middle = self.root(address % PLANES)?.get(address >> MIDDLE_BITS)?.load(Ordering::Acquire);
        // SAFETY: null, or a middle of `make`, and the table never unmaps one.
        unsafe { middle.as_ref() }
    }

    #[inline]
    fn leaf(&self, address: usize) -> Option<&Leaf> {
        let leaf = self.middle(address)?.leaves[leaf_index(address)].load(Ordering::Acquire);
        // SAFETY: null, or a leaf of `make_word`, and the table never unmaps one.
        unsafe { leaf.as_ref() }
    }

    #[inline]
    fn word(&self, address: usize) -> Option<&AtomicU64> {
        Some(&self.leaf(address)?.words[word_index(address)])
    }

    #[cold]
    fn make_word(&self, address: usize) -> Option<&AtomicU64> {
        let place = &self.make_middle(address)?.leaves[leaf_index(address)];
        if place.load(Ordering::Acquire).is_null() {
            let fresh = self.leaves.take();
            if fresh.is_null() {
                return None;
            }
            // If another thread was faster, its leaf counts, and nobody ever touches this one.
            let _ = place.compare_exchange(null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire);
        }
        self.word(address)
    }

    fn make_middle(&self, address: usize) -> Option<&Middle> {
        if address >> ADDRESS_BITS != 0 {
            return None;
        }
        let plane = address % PLANES;
        let root = if plane == 0 { &self.root } else { self.make(&self.planes[plane])? };
        self.make(&root[address >> MIDDLE_BITS])
    }

    /// The part behind a pointer. The first thread that needs it maps it.
    fn make<T>(&self, place: &AtomicPtr<T>) -> Option<&T> {
        let known = place.load(Ordering::Acquire);
        if !known.is_null() {
            // SAFETY: another call stored this part, and the table never unmaps one.
            return Some(unsafe { &*known });
        }
        let fresh = memory::map(size_of::<T>());
        if fresh.is_null() {
            return None;
        }
        match place.compare_exchange(null_mut(), fresh.cast(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                self.mapped.fetch_add(size_of::<T>(), Ordering::Relaxed);
                // SAFETY: a fresh mapping of this size, whose zeroes are null pointers and empty words.
                Some(unsafe { &*fresh.cast::<T>() })
            }
            Err(other) => {
                // SAFETY: mapped above, and no other thread has seen it.
                unsafe { memory::unmap(fresh, size_of::<T>()) };
                // SAFETY: another thread stored this part, and the table never unmaps one.
                Some(unsafe { &*other })
            }
        }
    }
}

#[inline(always)]
fn leaf_index(address: usize) -> usize {
    address >> LEAF_BITS & (LEAVES - 1)
}

#[inline(always)]
fn word_index(address: usize) -> usize {
    address >> GRAIN_BITS & (LEAF_WORDS - 1)
}

/// The word of a live block.
#[inline(always)]
fn packed(block: Block) -> u64 {
    let mut value = LIVE | u64::from(block.trace.0) << TRACE_SHIFT;
    if block.sampled {
        value |= SAMPLED;
    }
    if block.requested < 1 << REQUESTED_BITS && block.slop < 1 << SLOP_BITS {
        value | (block.requested as u64) << REQUESTED_SHIFT | (block.slop as u64) << SLOP_SHIFT
    } else {
        value | WIDE | fingerprint(block.requested as u64, block.slop as u64) << SLOP_SHIFT
    }
}

/// Tells whether sizes belong to the word of a wide block. It fills the bits into which the sizes do not fit.
fn fingerprint(requested: u64, slop: u64) -> u64 {
    let mixed = requested.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ slop.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    mixed >> (64 - SLOP_BITS - REQUESTED_BITS)
}
