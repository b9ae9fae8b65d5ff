//! The table of tags: two bytes for each 16 bytes of memory around blocks with a tag.
//!
//! ```text
//! root: a pointer for each region of 256 MiB of addresses
//! leaf of a region: an entry of 16 bits for each 16 bytes (a granule)
//!
//! entry of a block's first granule    0 | tag (15 bits)
//! entries of its next granules        1 | more | 14 bits of its usable bytes, the lowest first
//! ```
//!
//! A block of 16 usable bytes has one entry, and a block of less than 16 KiB has two. `more` means that another part
//! of the size follows. All other entries are 0. The system provides memory for a page of a leaf when a thread first
//! writes to it. `touched` marks these pages, so that readers skip all others.
//!
//! Only the thread that allocates or frees a block writes the block's entries. A reader on another thread reads the
//! first entry again after all others.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicUsize, Ordering};

use crate::platform::{return_pages, zeroed_pages};

use super::{NO_TAG, TagNumber, TaggedBlock};

/// The bytes of memory that one entry covers.
pub(super) const GRANULE: usize = 16;

pub(super) const LAST_TAG: TagNumber = IS_SIZE - 1;

/// The bit of an entry that contains a part of a size.
const IS_SIZE: u16 = 1 << 15;
/// The bit of an entry whose size continues in the next entry.
const MORE: u16 = 1 << 14;
const PART_BITS: u32 = 14;
/// The largest number of parts of a size.
const PARTS: usize = usize::BITS.div_ceil(PART_BITS) as usize;

/// Addresses have 48 bits. Some systems use the higher bits for their own tags.
const ADDRESS_BITS: u32 = if usize::BITS < 48 { usize::BITS } else { 48 };
const REGION_BITS: u32 = 28;
const REGIONS: usize = 1 << (ADDRESS_BITS - REGION_BITS);
const ENTRIES: usize = (1 << REGION_BITS) / GRANULE;
/// The number of entries on a page of the system.
const PAGE: usize = 4096 / size_of::<u16>();

/// A type for which zeroed memory is valid, and that threads may share.
///
/// # Safety
///
/// The type consists of atomic integers and pointers only.
#[allow(unsafe_code, reason = "an impl promises that zeroed memory is valid")]
unsafe trait ZeroValid: 'static {}

#[allow(unsafe_code, reason = "promises that zeroed memory is valid")]
// SAFETY: all fields are atomic integers and pointers, and arrays of them.
unsafe impl ZeroValid for RegionTags {}

/// Null, or a pointer to pages that were zeroed at first and stay mapped.
struct KeptPages<T>(AtomicPtr<T>);

#[allow(unsafe_code, reason = "memory of the system")]
impl<T: ZeroValid> KeptPages<T> {
    const fn none() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    #[inline]
    fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null, or `get_or_map` has stored zeroed pages with room for a `T`. Zeros are a valid
        // `T`.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Maps pages if there are none. Returns the memory, and whether this call mapped it. `None` if the system has no
    /// memory.
    fn get_or_map(&self) -> Option<(&'static T, bool)> {
        let pages = zeroed_pages(size_of::<T>())?;
        let pointer = pages.cast().as_ptr();
        let is_new =
            self.0.compare_exchange(null_mut(), pointer, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !is_new {
            // SAFETY: `zeroed_pages` has just returned these pages for this size, and no other thread has their
            // address.
            unsafe { return_pages(pages, size_of::<T>()) };
        }
        Some((self.get()?, is_new))
    }

    /// Inserts kept pages at the start of a linked list. `next` is the link inside these pages.
    fn push(&self, pages: &'static T, next: &Self) {
        let this = core::ptr::from_ref(pages).cast_mut();
        let mut last = self.0.load(Ordering::Acquire);
        loop {
            next.0.store(last, Ordering::Relaxed);
            match self.0.compare_exchange(last, this, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(other) => last = other,
            }
        }
    }
}

/// The entries of a region.
struct RegionTags {
    entries: [AtomicU16; ENTRIES],
    /// For each page of entries: 1 after the first write to it.
    touched: [AtomicU8; ENTRIES / PAGE],
    /// The first address of the region.
    start: AtomicUsize,
    /// The leaf that was created before this one.
    next: KeptPages<Self>,
}

/// The first level of the table. The system provides memory only for the pages that are written.
static ROOT: [KeptPages<RegionTags>; REGIONS] = [const { KeptPages::none() }; REGIONS];
/// The leaf that was created last.
static LEAVES: KeptPages<RegionTags> = KeptPages::none();

/// Whether any block has ever had a tag.
#[inline]
pub(super) fn in_use() -> bool {
    !LEAVES.0.load(Ordering::Relaxed).is_null()
}

#[inline]
fn leaf(address: usize) -> Option<&'static RegionTags> {
    ROOT[region(address)].get()
}

#[inline]
fn leaf_or_new(address: usize) -> Option<&'static RegionTags> {
    leaf(address).or_else(|| new_leaf(address))
}

#[cold]
fn new_leaf(address: usize) -> Option<&'static RegionTags> {
    let (leaf, is_new) = ROOT[region(address)].get_or_map()?;
    if is_new {
        leaf.start.store(address >> REGION_BITS << REGION_BITS, Ordering::Relaxed);
        LEAVES.push(leaf, &leaf.next);
    }
    Some(leaf)
}

const fn region(address: usize) -> usize {
    address >> REGION_BITS & (REGIONS - 1)
}

const fn place(address: usize) -> usize {
    address / GRANULE % ENTRIES
}

#[inline]
fn entry(address: usize) -> u16 {
    leaf(address).map_or(0, |leaf| leaf.entries[place(address)].load(Ordering::Acquire))
}

const fn is_tag(entry: u16) -> bool {
    entry != 0 && entry & IS_SIZE == 0
}

impl RegionTags {
    #[inline]
    fn write(&self, place: usize, entry: u16) {
        self.entries[place].store(entry, Ordering::Relaxed);
        self.touch(place);
    }

    #[inline]
    fn touch(&self, place: usize) {
        let touched = &self.touched[place / PAGE];
        if touched.load(Ordering::Relaxed) == 0 {
            touched.store(1, Ordering::Release);
        }
    }
}

/// Sets the tag of a block. False if the system has no memory for its entries.
#[inline]
pub(super) fn add(block: usize, tag: TagNumber, bytes: usize) -> bool {
    let Some(leaf) = leaf_or_new(block) else { return false };
    let place = place(block);
    if bytes < 1 << PART_BITS && place % PAGE < PAGE - 1 {
        // Both entries are on one page of one leaf. A size of one granule has no entry.
        if bytes > GRANULE {
            leaf.entries[place + 1].store(IS_SIZE | bytes as u16, Ordering::Relaxed);
        }
    } else if !add_size(block, bytes) {
        return false;
    }
    leaf.entries[place].store(tag, Ordering::Release);
    leaf.touch(place);
    true
}

#[cold]
fn add_size(block: usize, bytes: usize) -> bool {
    // All entries are in the block's region or in the next region.
    if leaf_or_new(block.wrapping_add(PARTS * GRANULE)).is_none() {
        return false;
    }
    let (mut rest, mut address) = (if bytes > GRANULE { bytes } else { 0 }, block);
    while rest > 0 {
        address = address.wrapping_add(GRANULE);
        let part = rest as u16 & (MORE - 1);
        rest >>= PART_BITS;
        let more = if rest > 0 { MORE } else { 0 };
        if let Some(leaf) = leaf(address) {
            leaf.write(place(address), IS_SIZE | more | part);
        }
    }
    true
}

#[inline]
pub(super) fn tag_of(block: usize) -> TagNumber {
    let entry = entry(block);
    if is_tag(entry) { entry } else { NO_TAG }
}

/// Clears the entries of a block, and returns its tag.
#[inline]
pub(super) fn remove(block: usize) -> TagNumber {
    let Some(leaf) = leaf(block) else { return NO_TAG };
    let place = place(block);
    let tag = leaf.entries[place].load(Ordering::Relaxed);
    if !is_tag(tag) {
        return NO_TAG;
    }
    leaf.entries[place].store(0, Ordering::Relaxed);
    match leaf.entries.get(place + 1) {
        Some(size) => match size.load(Ordering::Relaxed) & (IS_SIZE | MORE) {
            0 => {}
            // A reader that loads this 0 also sees that the tag has ended.
            IS_SIZE => size.store(0, Ordering::Release),
            _ => remove_size(block),
        },
        None => remove_size(block),
    }
    tag
}

#[cold]
fn remove_size(block: usize) {
    let mut address = block;
    loop {
        address = address.wrapping_add(GRANULE);
        let size = entry(address);
        if size & IS_SIZE == 0 {
            return;
        }
        if let Some(leaf) = leaf(address) {
            leaf.entries[place(address)].store(0, Ordering::Release);
        }
        if size & MORE == 0 {
            return;
        }
    }
}

/// The block with a tag that starts at this address; `None` without a tag.
pub(super) fn at(start: usize) -> Option<TaggedBlock> {
    let tag = tag_of(start);
    if tag == NO_TAG {
        return None;
    }
    let (mut bytes, mut address, mut shift) = (0, start, 0);
    loop {
        address = address.wrapping_add(GRANULE);
        let part = entry(address);
        if part & IS_SIZE == 0 {
            break;
        }
        bytes |= usize::from(part & (MORE - 1)).checked_shl(shift).unwrap_or(0);
        shift += PART_BITS;
        if part & MORE == 0 {
            break;
        }
    }
    // If the tag has changed, another thread has freed the block meanwhile.
    (tag_of(start) == tag).then_some(TaggedBlock { start, tag, bytes: bytes.max(GRANULE) })
}

/// The block with a tag that contains this address and starts at most `size` bytes before it.
pub(super) fn around(inside: usize, size: usize) -> Option<TaggedBlock> {
    let first = inside.saturating_sub(size) / GRANULE * GRANULE;
    let mut address = inside / GRANULE * GRANULE;
    while address >= first && address != 0 {
        let Some(leaf) = leaf(address) else {
            address = (address >> REGION_BITS << REGION_BITS).checked_sub(GRANULE)?;
            continue;
        };
        let place = place(address);
        if leaf.touched[place / PAGE].load(Ordering::Relaxed) == 0 {
            address = address.checked_sub((place % PAGE + 1) * GRANULE)?;
            continue;
        }
        if is_tag(leaf.entries[place].load(Ordering::Acquire)) {
            // Blocks do not overlap, so no earlier block can contain the address.
            return at(address).filter(|block| inside - address < block.bytes);
        }
        address -= GRANULE;
    }
    None
}

/// Calls `each` with every block that has a tag.
pub(super) fn for_each(mut each: impl FnMut(TaggedBlock)) {
    for leaf in leaves() {
        let start = leaf.start.load(Ordering::Relaxed);
        for (page, _) in leaf.touched_pages() {
            for place in page * PAGE..(page + 1) * PAGE {
                if is_tag(leaf.entries[place].load(Ordering::Relaxed))
                    && let Some(block) = at(start + place * GRANULE)
                {
                    each(block);
                }
            }
        }
    }
}

/// The bytes of the table that are backed by memory.
pub(super) fn bytes() -> usize {
    let pages = |leaf: &RegionTags| leaf.touched_pages().count() * PAGE * size_of::<u16>();
    leaves().map(|leaf| pages(leaf) + size_of::<RegionTags>() - ENTRIES * size_of::<u16>()).sum()
}

fn leaves() -> impl Iterator<Item = &'static RegionTags> {
    core::iter::successors(LEAVES.get(), |leaf| leaf.next.get())
}

impl RegionTags {
    fn touched_pages(&self) -> impl Iterator<Item = (usize, &AtomicU8)> {
        self.touched.iter().enumerate().filter(|(_, touched)| touched.load(Ordering::Acquire) != 0)
    }
}
