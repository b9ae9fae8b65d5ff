//! The live blocks, indexed by address. The table has a line of 64 bytes for each 512 bytes of heap, and further lines
//! where many small blocks are: see [`line`]. The table uses memory only for parts of the heap with blocks. A part of
//! the heap that contains only large blocks has a few slots instead of lines: see [`sparse`]. A cell of a line takes
//! precedence over a slot of the same address, so that no data moves when lines replace slots.
//!
//! The table has no lock. The engine records a block by one exchange, after the allocator has returned the block, and
//! forgets it by one store, before the block is freed. If an allocator aligns to less than 16, the table has one plane
//! for each remainder modulo 16.
//!
//! [`around`] finds the block around an address. The number of its reads is bounded, even if the heap before the
//! address is empty.

mod around;
mod line;
mod place;
mod sampled_blocks;
mod sparse;
#[cfg(test)]
mod tests;
mod word;

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use dmd_format::tables::{ADDRESS_BITS, GRAIN_BITS, LEAF_BITS, MIDDLE_BITS, PLANES};

use crate::system::lock::Lock;
use crate::system::memory::{self, ZeroedPool};
use crate::tables::trace_id::TraceId;
use line::{KEYS, LINE_BITS, is_block, key_of, place_of};
use place::BlockPlace;
use sparse::{SparseChunk, SparseSlot};
use word::{FREED, LIVE, MARKED, SAMPLED, SLOP_SHIFT, TAG, WIDE, fingerprint, is_live, packed};

pub(crate) use line::BlockLine;
pub(crate) use word::BlockWord;

/// The table's data about one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableBlock {
    /// The bytes that the program requested.
    pub(crate) requested: usize,
    /// The usable bytes minus the requested bytes.
    pub(crate) slop: usize,
    pub(crate) trace: TraceId,
    /// Whether the block also represents other blocks: the small blocks since the last sampled block, or the blocks
    /// that a sample by bytes left out.
    pub(crate) sampled: bool,
    pub(crate) marked: bool,
}

impl TableBlock {
    pub(crate) fn usable(&self) -> usize {
        self.requested.saturating_add(self.slop)
    }
}

/// The block at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundBlock {
    Start(TableBlock),
    /// Inside the block that starts at the address in the first field.
    Inside(usize, TableBlock),
    /// The start of a block that was freed.
    Freed,
    Nothing,
}

/// The maximum number of times that a thread reads a wide block again because other threads change it.
const TRIES: usize = 32;

/// The size of a page in the table's own count, in bytes.
const PAGE: usize = 4096;

/// The bits that may be set in the address of a usual block: a multiple of 16 in the table's range.
const MOST_BLOCKS: usize = ((1 << ADDRESS_BITS) - 1) & !(PLANES - 1);

const LEAF_LINES: usize = 1 << (LEAF_BITS - LINE_BITS);
const LEAVES: usize = 1 << (MIDDLE_BITS - LEAF_BITS);
const ROOTS: usize = 1 << (ADDRESS_BITS - MIDDLE_BITS);

/// The lines for one part of the heap. All zero at first, like the other parts of the table. Small blocks use nearly
/// all of a leaf, so nearly all of its mapped bytes are resident.
#[repr(C)]
struct TableLeaf {
    lines: [BlockLine; LEAF_LINES],
}

#[repr(C)]
pub(super) struct MiddleTable {
    leaves: [AtomicPtr<TableLeaf>; LEAVES],
    sparse: [AtomicPtr<SparseChunk>; LEAVES],
    starts: around::InMiddle,
}

pub(super) type RootTable = [AtomicPtr<MiddleTable>; ROOTS];

/// The place for a block: the first line for its part of the heap, and the slots of the larger part around it.
#[derive(Clone, Copy)]
pub(crate) struct BlockHome<'t> {
    pub(crate) line: &'t BlockLine,
    slots: &'t AtomicPtr<SparseChunk>,
}

pub(crate) struct BlockTable {
    /// The root for blocks at multiples of 16. The allocators of C libraries return only such blocks.
    pub(super) root: RootTable,
    pub(super) planes: [AtomicPtr<RootTable>; PLANES],
    starts: around::InTable,
    leaves: ZeroedPool<TableLeaf>,
    /// Further lines of the chains that start in leaves.
    lines: ZeroedPool<BlockLine>,
    chunks: ZeroedPool<SparseChunk>,
    /// Held while a thread adds a sampled block, or gives a page back.
    pages: Lock,
    /// The bytes mapped for roots and middles.
    mapped: AtomicUsize,
    /// The usable bytes of the largest block so far.
    largest: AtomicUsize,
}

impl BlockTable {
    pub(crate) const fn new() -> Self {
        Self {
            root: [const { AtomicPtr::new(null_mut()) }; ROOTS],
            planes: [const { AtomicPtr::new(null_mut()) }; PLANES],
            starts: around::InTable::new(),
            leaves: ZeroedPool::new(),
            lines: ZeroedPool::new(),
            chunks: ZeroedPool::new(),
            pages: Lock::new(),
            mapped: AtomicUsize::new(0),
            largest: AtomicUsize::new(0),
        }
    }

    pub(crate) fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        each(&self.pages);
    }

    /// The number of bytes mapped for the table.
    pub(crate) fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Relaxed)
            + self.leaves.mapped()
            + self.lines.mapped()
            + self.chunks.mapped()
    }

    /// The resident bytes of the table, without its middles.
    pub(crate) fn touched(&self) -> usize {
        let mut pages = 0;
        self.for_each_stretch(|_, leaf, _| {
            let Some(leaf) = leaf else { return };
            pages += resident_pages(leaf);
        });
        pages * PAGE + self.lines.used() + self.chunks.used()
    }

    /// Records a block. Returns false if there is no memory to do so.
    #[inline]
    pub(crate) fn insert(&self, address: usize, block: TableBlock) -> bool {
        let stored = match self.line(address) {
            Some(line) => self.store(address, line, block),
            None => self.insert_first(address, block),
        };
        if stored && block.usable() >= around::LARGE {
            self.note_start(address, block.usable());
        }
        stored
    }

    /// Records a block at an address without a line.
    #[cold]
    fn insert_first(&self, address: usize, block: TableBlock) -> bool {
        if block.usable() >= around::LARGE
            && let Some(slot) = self.make_slot(address)
        {
            slot.store(packed(block) | key_of(address), block);
            return true;
        }
        self.make_line(address).is_some_and(|line| self.store(address, line, block))
    }

    #[inline]
    fn store(&self, address: usize, line: &BlockLine, block: TableBlock) -> bool {
        let (word, key) = (packed(block), key_of(address));
        let (requested, slop) = (block.requested as u64, block.slop as u64);
        if word & WIDE != 0 && line.store_sizes(key, requested, slop, &self.lines).is_none() {
            return false;
        }
        line.store(word | key, &self.lines).is_some()
    }

    /// Forgets the block that starts at this address, and returns its word. Returns `None` and changes nothing if the
    /// sizes do not fit into a word, or if the block represents other blocks.
    #[inline(always)]
    pub(crate) fn remove_word(&self, address: usize) -> Option<BlockWord> {
        let key = key_of(address);
        let (cell, value) = self.line(address)?.live(key)?;
        if value & (WIDE | SAMPLED) != 0 {
            return None;
        }
        cell.store(FREED | key, Ordering::Release);
        Some(BlockWord::from_bits(value))
    }

    /// Forgets the block that starts at this address, and returns it.
    pub(crate) fn remove(&self, address: usize) -> Option<TableBlock> {
        let place = self.find_place(address)?;
        let (value, key) = (place.word().load(Ordering::Relaxed), key_of(address));
        if !is_live(value, key) {
            return None;
        }
        let block = self.block(address, place, value);
        place.word().store(FREED | key, Ordering::Release);
        if let BlockPlace::Cell(_, line) = place
            && value & WIDE != 0
        {
            line.remove_sizes(key);
        }
        Some(block)
    }

    /// Whether a live block starts at this address.
    #[inline]
    pub(crate) fn is_live(&self, address: usize) -> bool {
        self.value(address) & TAG == LIVE
    }

    /// Sets the mark bit. Returns whether it was clear before, or `None` if no block starts at this address.
    pub(crate) fn mark(&self, address: usize) -> Option<bool> {
        let place = self.find_place(address)?;
        let marked = |value| is_live(value, key_of(address)).then_some(value | MARKED);
        let before = place.word().fetch_update(Ordering::AcqRel, Ordering::Acquire, marked).ok()?;
        Some(before & MARKED == 0)
    }

    /// Clears the mark bit.
    pub(crate) fn unmark(&self, address: usize) {
        if let Some(place) = self.find_place(address) {
            // This fails if another thread has freed the block in the meantime: then the block has no mark.
            let _ = place.word().fetch_update(Ordering::AcqRel, Ordering::Acquire, |value| {
                is_live(value, key_of(address)).then_some(value & !MARKED)
            });
        }
    }

    /// The live block that starts at this address.
    pub(crate) fn get(&self, address: usize) -> Option<TableBlock> {
        self.read(address, self.find_place(address)?)
    }

    /// The live block at a place. Another thread may free it during the call and record another block at the place. So
    /// the function reads the sizes of a wide block again until they match its word.
    #[inline]
    fn read(&self, address: usize, place: BlockPlace<'_>) -> Option<TableBlock> {
        let mut read = None;
        for _ in 0..TRIES {
            let value = place.word().load(Ordering::Acquire);
            if !is_live(value, key_of(address)) {
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

    /// Finds the live block that starts at this address, the live block that contains the address, or a freed block
    /// that started there. Searches in this order.
    pub(crate) fn find(&self, address: usize) -> FoundBlock {
        if let Some(block) = self.get(address) {
            return FoundBlock::Start(block);
        }
        match self.around(address) {
            Some((start, block)) => FoundBlock::Inside(start, block),
            None if self.value(address) & TAG == FREED => FoundBlock::Freed,
            None => FoundBlock::Nothing,
        }
    }

    /// Calls `each` for every live block, in order of addresses within a plane.
    pub(crate) fn for_each(&self, mut each: impl FnMut(usize, TableBlock)) {
        self.for_each_place(|address, place| {
            if let Some(block) = self.read(address, place) {
                each(address, block);
            }
        });
    }

    /// Forgets all blocks.
    pub(crate) fn clear(&self) {
        self.for_each_stretch(|_, leaf, slots| {
            let cells = leaf.into_iter().flat_map(|leaf| &leaf.lines).flat_map(BlockLine::cells);
            let slots = sparse::in_order(slots).into_iter().flatten().map(|(_, slot)| &slot.word);
            cells.chain(slots).for_each(|word| word.store(0, Ordering::Relaxed));
        });
    }

    fn for_each_place<'t>(&'t self, mut each: impl FnMut(usize, BlockPlace<'t>)) {
        self.for_each_stretch(|start, leaf, slots| {
            let mut slots = sparse::in_order(slots).into_iter().flatten().peekable();
            for (at, line) in leaf.map_or(&[][..], |leaf| &leaf.lines).iter().enumerate() {
                let first = at * KEYS;
                // The places in order, each with a bit in `taken`, because most lines have few blocks.
                let (mut cells, mut taken) = ([None; KEYS], 0_u32);
                for cell in line.cells() {
                    let word = cell.load(Ordering::Acquire);
                    if is_block(word, word & word::KEY) {
                        cells[place_of(word)] = Some(cell);
                        taken |= 1 << place_of(word);
                    }
                }
                if slots.peek().is_some_and(|(index, _)| *index < first + KEYS) {
                    let here = slots.clone().take_while(|(index, _)| *index < first + KEYS);
                    here.for_each(|(index, _)| taken |= 1 << (index - first));
                }
                while taken != 0 {
                    let index = taken.trailing_zeros() as usize;
                    taken &= taken - 1;
                    let slot =
                        slots.next_if(|(of, _)| *of == first + index).map(|(_, slot)| BlockPlace::Slot(slot));
                    if let Some(place) = cells[index].map(|cell| BlockPlace::Cell(cell, line)).or(slot) {
                        each(start + ((first + index) << GRAIN_BITS), place);
                    }
                }
            }
            for (index, slot) in slots {
                each(start + (index << GRAIN_BITS), BlockPlace::Slot(slot));
            }
        });
    }

    /// Calls `each` for every part of the heap that has a leaf, slots, or both.
    fn for_each_stretch<'t>(
        &'t self,
        mut each: impl FnMut(usize, Option<&'t TableLeaf>, Option<&'t SparseChunk>),
    ) {
        for plane in 0..PLANES {
            let Some(root) = self.root(plane) else { continue };
            for (high, middle) in root.iter().enumerate() {
                // SAFETY: the pointer is null or points to a middle of `make`, and the table never unmaps one.
                let Some(middle) = (unsafe { middle.load(Ordering::Acquire).as_ref() }) else { continue };
                for (low, (leaf, chunk)) in middle.leaves.iter().zip(&middle.sparse).enumerate() {
                    // SAFETY: the pointer is null or points to a leaf of `make_line`, and the table never unmaps one.
                    let leaf = unsafe { leaf.load(Ordering::Acquire).as_ref() };
                    // SAFETY: the pointer is null or points to a chunk of `make_slot`, and the table never unmaps one.
                    let chunk = unsafe { chunk.load(Ordering::Acquire).as_ref() };
                    if leaf.is_some() || chunk.is_some() {
                        each((high << MIDDLE_BITS) + (low << LEAF_BITS) + plane, leaf, chunk);
                    }
                }
            }
        }
    }

    fn block(&self, address: usize, place: BlockPlace<'_>, value: u64) -> TableBlock {
        let block = BlockWord(value).block();
        if value & WIDE == 0 {
            return block;
        }
        let (requested, slop) = place.sizes(key_of(address)).unwrap_or_default();
        TableBlock { requested: requested as usize, slop: slop as usize, ..block }
    }

    /// The word of the live or freed block that starts at this address; 0 if the table has no such
    /// block.
    fn value(&self, address: usize) -> u64 {
        let value = self.find_place(address).map_or(0, |place| place.word().load(Ordering::Acquire));
        // Another block may have taken the cell in the meantime.
        if is_block(value, key_of(address)) { value } else { 0 }
    }

    /// The place of the live or freed block that starts at this address.
    #[inline]
    fn find_place(&self, address: usize) -> Option<BlockPlace<'_>> {
        let cell =
            self.line(address).and_then(|line| Some(BlockPlace::Cell(line.find(key_of(address))?, line)));
        cell.or_else(|| self.slot(address).map(BlockPlace::Slot))
    }

    /// The slot of an address; `None` if the address has no slot.
    fn slot(&self, address: usize) -> Option<&SparseSlot> {
        let first = self.middle(address)?.sparse[leaf_index(address)].load(Ordering::Acquire);
        // SAFETY: the pointer is null or points to a chunk of `make_slot`, and the table never unmaps one.
        unsafe { first.as_ref() }?.find(place_index(address))
    }

    /// The slot of an address. Makes the slot if necessary. Returns `None` if this part of the heap has too many
    /// slots, or if memory is short.
    fn make_slot(&self, address: usize) -> Option<&SparseSlot> {
        let middle = self.make_middle(address)?;
        sparse::make(&middle.sparse[leaf_index(address)], place_index(address), &self.chunks)
    }

    #[inline]
    fn root(&self, plane: usize) -> Option<&RootTable> {
        if plane == 0 {
            return Some(&self.root);
        }
        let root = self.planes[plane].load(Ordering::Acquire);
        // SAFETY: the pointer is null or points to a root of `make`, and the table never unmaps one.
        unsafe { root.as_ref() }
    }

    #[inline(always)]
    fn middle(&self, address: usize) -> Option<&MiddleTable> {
        if address & !MOST_BLOCKS != 0 {
            return self.other_middle(address);
        }
        // SAFETY: the pointer is null or points to a middle of `make`, and the table never unmaps one.
        unsafe { self.root[address >> MIDDLE_BITS].load(Ordering::Acquire).as_ref() }
    }

    /// Like [`middle`](Self::middle), for any address.
    #[inline(never)]
    fn other_middle(&self, address: usize) -> Option<&MiddleTable> {
        let middle = self.root(address % PLANES)?.get(address >> MIDDLE_BITS)?.load(Ordering::Acquire);
        // SAFETY: the pointer is null or points to a middle of `make`, and the table never unmaps one.
        unsafe { middle.as_ref() }
    }

    /// The place for a block that starts at an address; `None` if the address has no line.
    #[inline(always)]
    pub(crate) fn home(&self, address: usize) -> Option<BlockHome<'_>> {
        let middle = self.middle(address)?;
        let line = &middle.leaf(address)?.lines[place_index(address) / KEYS];
        Some(BlockHome { line, slots: &middle.sparse[leaf_index(address)] })
    }

    /// The first line for the part of the heap around an address.
    #[inline(always)]
    fn line(&self, address: usize) -> Option<&BlockLine> {
        Some(self.home(address)?.line)
    }

    #[cold]
    fn make_line(&self, address: usize) -> Option<&BlockLine> {
        let place = &self.make_middle(address)?.leaves[leaf_index(address)];
        if place.load(Ordering::Acquire).is_null() {
            let fresh = self.leaves.take();
            if fresh.is_null() {
                return None;
            }
            // If another thread was faster, its leaf is used, and this leaf is never touched.
            let _ = place.compare_exchange(null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire);
        }
        self.line(address)
    }

    fn make_middle(&self, address: usize) -> Option<&MiddleTable> {
        if address >> ADDRESS_BITS != 0 {
            return None;
        }
        let plane = address % PLANES;
        let root = if plane == 0 { &self.root } else { self.make(&self.planes[plane])? };
        self.make(&root[address >> MIDDLE_BITS])
    }

    /// The part behind a pointer. The first thread that needs the part maps it.
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
                // SAFETY: the mapping is new and has this size. Its zeros are null pointers and empty words.
                Some(unsafe { &*fresh.cast::<T>() })
            }
            Err(other) => {
                // SAFETY: this function mapped the bytes, and no other thread has their address.
                unsafe { memory::unmap(fresh, size_of::<T>()) };
                // SAFETY: another thread stored this part, and the table never unmaps one.
                Some(unsafe { &*other })
            }
        }
    }
}

impl MiddleTable {
    #[inline(always)]
    fn leaf(&self, address: usize) -> Option<&TableLeaf> {
        let leaf = self.leaves[leaf_index(address)].load(Ordering::Acquire);
        // SAFETY: the pointer is null or points to a leaf of `make_line`, and the table never unmaps one.
        unsafe { leaf.as_ref() }
    }
}

impl BlockHome<'_> {
    /// Records a block of less than [`around::LARGE`] usable bytes if its first line has room and no live block at this
    /// address. Otherwise it returns false and changes nothing.
    #[inline(always)]
    pub(crate) fn insert_word(self, address: usize, word: BlockWord) -> bool {
        let key = key_of(address);
        let Some((cell, old)) = self.line.cell_for(key) else { return false };
        let free = old & TAG != LIVE && (is_block(old, key) || self.slots.load(Ordering::Acquire).is_null());
        free && word.usable() < around::LARGE
            && cell.compare_exchange(old, word.bits() | key, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[inline(always)]
fn leaf_index(address: usize) -> usize {
    address >> LEAF_BITS & (LEAVES - 1)
}

/// The number of an address within the part of the heap that its leaf covers.
#[inline(always)]
fn place_index(address: usize) -> usize {
    address >> GRAIN_BITS & (LEAF_LINES * KEYS - 1)
}

/// The number of resident pages of a leaf.
#[cfg(target_os = "linux")]
fn resident_pages(leaf: &TableLeaf) -> usize {
    let mut resident = [0u8; size_of::<TableLeaf>().div_ceil(PAGE)];
    // SAFETY: `leaf` consists of whole pages of a mapping, and `resident` has a byte for each page.
    let failed = unsafe {
        libc::mincore(
            core::ptr::from_ref(leaf).cast_mut().cast(),
            size_of::<TableLeaf>(),
            resident.as_mut_ptr(),
        )
    };
    if failed == 0 { resident.iter().filter(|page| **page & 1 == 1).count() } else { 0 }
}

/// The maximum number of resident pages of a leaf: this module cannot count resident pages on this system.
#[cfg(not(target_os = "linux"))]
fn resident_pages(_leaf: &TableLeaf) -> usize {
    size_of::<TableLeaf>().div_ceil(PAGE)
}
