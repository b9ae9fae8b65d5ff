//! The table of tags: two bits for each 16 bytes of memory around blocks with a tag.
//!
//! ```text
//! root: a pointer for each region of 256 MiB of addresses
//! leaf of a region: two bits, S and D, for each 16 bytes (a granule); three lanes for each 4 KiB (a page)
//!
//! block    first granule        second granule           last granule    others
//! S        1                    the code's second bit    0               0
//! D        the code's first bit 0, or 1 if the last      1               0
//! ```
//!
//! A block with a tag starts at a granule, reaches into a second granule ([`raised`](super::raised)), and shares no
//! granule with another tagged block. The value of a block is its tag, and whether its last granule is half full. A
//! page has a lane for each of the first three values on it, and the code of a block is the number of its lane. Code 3
//! is for all other values: the details of the region then contain one byte of the value at each of the block's first
//! two granules.
//!
//! `S` of a second granule may also be 1. So readers look at runs of granules with `S`: the first, third and fifth
//! granule of a run start a block, and so on.
//!
//! The system provides memory for a page of a table when a thread first writes to it. `touched` marks these pages, so
//! that readers skip all other pages. A thread that allocates or frees a block changes the bits of one word in one
//! step. If the bits are in several words, the thread sets the first granule last, and clears the first granule before
//! the last granule. A reader on another thread reads the first granule again after all other granules.

use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use super::kept_pages::{KeptPages, ZeroValid};
use super::{NO_TAG, TagNumber, TaggedBlock};

/// The bytes of memory that two bits cover.
pub(super) const GRANULE: usize = 16;
/// The sizes of blocks with a tag are multiples of this number of bytes.
pub(super) const UNIT: usize = GRANULE / 2;
/// The size of the smallest block that reaches into a second granule.
pub(super) const LEAST_SIZE: usize = GRANULE + UNIT;

/// The largest tag. A value has 16 bits for the tag, and one bit for a half full last granule.
pub(super) const LAST_TAG: TagNumber = TagNumber::MAX - 1;

/// Addresses have 48 bits. Some systems use the higher bits for their own tags.
const ADDRESS_BITS: u32 = if usize::BITS < 48 { usize::BITS } else { 48 };
const REGION_BITS: u32 = 28;
const REGIONS: usize = 1 << (ADDRESS_BITS - REGION_BITS);
const GRANULES: usize = (1 << REGION_BITS) / GRANULE;

/// The number of granules whose bits are in one word.
const IN_WORD: usize = 32;
const WORDS: usize = GRANULES / IN_WORD;
/// Bytes of a page of the system.
const PAGE: usize = 4096;
/// Words on a page of the system.
const PAGE_WORDS: usize = PAGE / size_of::<u64>();
/// The number of granules on a page. These granules share the lanes of the page.
const LANE_GRANULES: usize = PAGE / GRANULE;
const LANES: usize = 3;
const LANE_BITS: usize = 17;
const LANE_MASK: u64 = (1 << LANE_BITS) - 1;
/// The code of a block whose value has no lane.
const DETAILED: u64 = 3;

const S: u64 = 1;
const D: u64 = 2;
const ALL_S: u64 = u64::MAX / 3;
const ALL_D: u64 = ALL_S * D;

#[allow(unsafe_code, reason = "promises that zeroed memory is valid")]
// SAFETY: all fields are atomic integers and pointers, and arrays of them.
unsafe impl ZeroValid for RegionTags {}

#[allow(unsafe_code, reason = "promises that zeroed memory is valid")]
// SAFETY: all fields are atomic integers and arrays of them.
unsafe impl ZeroValid for RegionDetails {}

/// The bits of a region.
struct RegionTags {
    words: [AtomicU64; WORDS],
    /// For each page of words: 1 after the first write to it.
    touched: [AtomicU8; WORDS / PAGE_WORDS],
    /// For each page of memory: up to three values, 0 for a free lane.
    lanes: [AtomicU64; GRANULES / LANE_GRANULES],
    /// The first address of the region.
    start: AtomicUsize,
    /// The leaf that was created before this one.
    next: KeptPages<Self>,
    details: KeptPages<RegionDetails>,
}

/// The values of a region's blocks that have no lane.
struct RegionDetails {
    /// At each of a block's first two granules: a byte of the tag.
    bytes: [AtomicU8; GRANULES],
    /// At a block's first granule: the lowest bit of the value.
    halves: [AtomicU64; GRANULES / 64],
    /// For each page of bytes: 1 after the first write to it.
    touched: [AtomicU8; GRANULES / PAGE],
}

/// The first level of the table. The system provides memory only for the pages that are written.
static ROOT: [KeptPages<RegionTags>; REGIONS] = [const { KeptPages::none() }; REGIONS];
/// The leaf that was created last.
static LEAVES: KeptPages<RegionTags> = KeptPages::none();

/// Whether any block has ever had a tag.
#[inline]
pub(super) fn in_use() -> bool {
    LEAVES.is_mapped()
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
        leaf.start.store(region_start(address), Ordering::Relaxed);
        LEAVES.push(leaf, &leaf.next);
    }
    Some(leaf)
}

const fn region(address: usize) -> usize {
    address >> REGION_BITS & (REGIONS - 1)
}

const fn region_start(address: usize) -> usize {
    address >> REGION_BITS << REGION_BITS
}

const fn place(address: usize) -> usize {
    address / GRANULE % GRANULES
}

/// The value of a block with this tag and a size of `units` times [`UNIT`] bytes.
const fn value(tag: TagNumber, units: usize) -> u32 {
    (tag as u32) << 1 | (units & 1) as u32
}

/// The tag in a value.
const fn tag_in(value: u32) -> TagNumber {
    (value >> 1) as TagNumber
}

impl RegionTags {
    #[inline]
    fn set(&self, place: usize, bits: u64) {
        self.words[place / IN_WORD].fetch_or(bits << (place % IN_WORD * 2), Ordering::Release);
        let touched = &self.touched[place / IN_WORD / PAGE_WORDS];
        if touched.load(Ordering::Relaxed) == 0 {
            touched.store(1, Ordering::Release);
        }
    }

    /// Clears these bits of the granules from `place` on. A thread has set these bits before.
    #[inline]
    fn clear(&self, place: usize, bits: u64) {
        self.words[place / IN_WORD].fetch_and(!(bits << (place % IN_WORD * 2)), Ordering::Release);
    }

    /// The bits of a granule and of the later granules in its word.
    #[inline]
    fn bits(&self, place: usize) -> u64 {
        self.words[place / IN_WORD].load(Ordering::Acquire) >> (place % IN_WORD * 2)
    }

    /// The code for the value of a block. If the value has no lane, writes it to the details. `None` if the system has
    /// no memory for the details.
    #[inline]
    fn code(&self, block: usize, value: u32) -> Option<u64> {
        let lanes = &self.lanes[place(block) / LANE_GRANULES];
        let known = lanes.load(Ordering::Acquire);
        match lane_with(known, value) {
            Some(lane) => Some(lane as u64),
            None => new_code(lanes, known, block, value),
        }
    }

    fn value(&self, block: usize, code: u64) -> u32 {
        if code == DETAILED {
            return detailed_value(block);
        }
        let lanes = self.lanes[place(block) / LANE_GRANULES].load(Ordering::Acquire);
        (lanes >> (code as usize * LANE_BITS) & LANE_MASK) as u32
    }

    fn touched_pages(&self) -> impl Iterator<Item = usize> {
        (0..self.touched.len()).filter(|page| self.touched[*page].load(Ordering::Acquire) != 0)
    }
}

#[inline]
fn lane_with(lanes: u64, value: u32) -> Option<usize> {
    (0..LANES).find(|lane| lanes >> (lane * LANE_BITS) & LANE_MASK == u64::from(value))
}

#[cold]
fn new_code(lanes: &AtomicU64, mut known: u64, block: usize, value: u32) -> Option<u64> {
    while let Some(free) = lane_with(known, 0) {
        let with = known | u64::from(value) << (free * LANE_BITS);
        match lanes.compare_exchange(known, with, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(free as u64),
            Err(other) => known = other,
        }
        // Another thread may have added the same value.
        if let Some(lane) = lane_with(known, value) {
            return Some(lane as u64);
        }
    }
    let [low, high] = tag_in(value).to_le_bytes();
    for (address, byte) in [(block, low), (block.wrapping_add(GRANULE), high)] {
        let leaf = leaf_or_new(address)?;
        let details = leaf.details.get().or_else(|| Some(leaf.details.get_or_map()?.0))?;
        details.bytes[place(address)].store(byte, Ordering::Relaxed);
        details.touched[place(address) / PAGE].store(1, Ordering::Relaxed);
    }
    let (half, bit) = half(block)?;
    if value & 1 == 1 {
        half.fetch_or(bit, Ordering::Relaxed);
    } else {
        half.fetch_and(!bit, Ordering::Relaxed);
    }
    Some(DETAILED)
}

fn detailed_value(block: usize) -> u32 {
    let byte = |address| {
        let details = leaf(address).and_then(|leaf| leaf.details.get());
        details.map_or(0, |details| details.bytes[place(address)].load(Ordering::Relaxed))
    };
    let tag = u16::from_le_bytes([block, block.wrapping_add(GRANULE)].map(byte));
    let is_half = half(block).is_some_and(|(half, bit)| half.load(Ordering::Relaxed) & bit != 0);
    value(tag, is_half.into())
}

/// The word and the bit for the lowest bit of the value of a block in the details.
fn half(block: usize) -> Option<(&'static AtomicU64, u64)> {
    let place = place(block);
    Some((&leaf(block)?.details.get()?.halves[place / 64], 1 << (place % 64)))
}

/// Sets the tag of a block. Returns false if the system has no memory for the entries of the block. The block starts at
/// a granule, and has at least [`LEAST_SIZE`] bytes.
#[inline]
pub(super) fn add(block: usize, tag: TagNumber, bytes: usize) -> bool {
    let Some(leaf) = leaf_or_new(block) else { return false };
    let units = bytes / UNIT;
    let granules = units.div_ceil(2);
    let Some(code) = leaf.code(block, value(tag, units)) else { return false };
    let place = place(block);
    if granules <= IN_WORD - place % IN_WORD {
        leaf.set(place, S | (code << 1) | (D << (2 * (granules - 1))));
        return true;
    }
    add_long(leaf, block, granules, code)
}

/// Adds a block whose bits lie in several words.
#[cold]
fn add_long(first: &RegionTags, block: usize, granules: usize, code: u64) -> bool {
    let second = block.wrapping_add(GRANULE);
    let last = block.wrapping_add((granules - 1) * GRANULE);
    // All regions from the first to the last need a leaf, since a reader that looks for the end of the block reads
    // all of them.
    for region in region(block)..=region(last) {
        if leaf_or_new(region << REGION_BITS).is_none() {
            return false;
        }
    }
    let Some((with_second, with_last)) = leaf(second).zip(leaf(last)) else { return false };
    with_last.set(place(last), D);
    if code >> 1 != 0 {
        with_second.set(place(second), S);
    }
    first.set(place(block), S | ((code << 1) & D));
    true
}

/// The first granule of a live block: its leaf, its place in the leaf, and the bits from this place on.
#[inline]
fn start(block: usize) -> Option<(&'static RegionTags, usize, u64)> {
    // A block without a tag may start within the last granule of another block.
    if !block.is_multiple_of(GRANULE) {
        return None;
    }
    let leaf = leaf(block)?;
    let place = place(block);
    let bits = leaf.bits(place);
    (bits & S != 0).then_some((leaf, place, bits))
}

/// The code of a block that starts with these bits.
#[inline]
fn code(block: usize, place: usize, bits: u64) -> u64 {
    if place % IN_WORD < IN_WORD - 1 {
        return (bits >> 1) & DETAILED;
    }
    let second = block.wrapping_add(GRANULE);
    let second = leaf(second).map_or(0, |leaf| leaf.bits(self::place(second)));
    ((bits & D) >> 1) | ((second & S) << 1)
}

/// The tag of the live block that starts at this address, or [`NO_TAG`].
#[inline]
pub(super) fn tag_of(block: usize) -> TagNumber {
    start(block).map_or(NO_TAG, |(leaf, place, bits)| tag_in(leaf.value(block, code(block, place, bits))))
}

/// Clears the bits of a live block, and returns its tag, or [`NO_TAG`] for a block without a tag.
#[inline]
pub(super) fn remove(block: usize) -> TagNumber {
    let Some((leaf, place, bits)) = start(block) else { return NO_TAG };
    let tag = tag_in(leaf.value(block, code(block, place, bits)));
    let ends = bits & ALL_D & !D;
    if ends != 0 {
        leaf.clear(place, S | D | S << 2 | ends & ends.wrapping_neg());
    } else {
        remove_long(leaf, block);
    }
    tag
}

#[cold]
fn remove_long(first: &RegionTags, block: usize) {
    let last = last_granule(block);
    // Clear the second granule before the first. If only the second granule were set, a reader would take it for the
    // start of a block.
    let second = block.wrapping_add(GRANULE);
    if let Some(leaf) = leaf(second) {
        leaf.clear(place(second), S);
    }
    first.clear(place(block), S | D);
    if let Some((leaf, last)) = last.and_then(|last| Some((leaf(last)?, last))) {
        leaf.clear(place(last), D);
    }
}

/// The last granule of a block; `None` if another thread has freed the block meanwhile.
fn last_granule(block: usize) -> Option<usize> {
    let mut address = block.wrapping_add(GRANULE);
    loop {
        let leaf = leaf(address)?;
        let place = place(address);
        let word = place / IN_WORD;
        if leaf.touched[word / PAGE_WORDS].load(Ordering::Acquire) == 0 {
            let next = (word / PAGE_WORDS + 1) * PAGE_WORDS * IN_WORD;
            address = address.wrapping_add((next - place) * GRANULE);
            continue;
        }
        let ends = leaf.bits(place) & ALL_D;
        if ends != 0 {
            return Some(address.wrapping_add(ends.trailing_zeros() as usize / 2 * GRANULE));
        }
        address = address.wrapping_add((IN_WORD - place % IN_WORD) * GRANULE);
    }
}

/// The tagged block that starts at this address; `None` if no tagged block starts there.
pub(super) fn at(start: usize) -> Option<TaggedBlock> {
    let (leaf, place, bits) = self::start(start)?;
    let value = leaf.value(start, code(start, place, bits));
    let last = last_granule(start)?;
    let bytes = last.wrapping_sub(start) + GRANULE - (value & 1) as usize * UNIT;
    // If the bits or the value have changed, another thread has freed the block meanwhile.
    let is_live = leaf.bits(place) & (S | D) == bits & (S | D)
        && leaf.value(start, code(start, place, leaf.bits(place))) == value;
    (is_live && tag_in(value) != NO_TAG).then_some(TaggedBlock { start, tag: tag_in(value), bytes })
}

/// The tagged block that contains this address and starts at most `size` bytes before the address.
pub(super) fn around(inside: usize, size: usize) -> Option<TaggedBlock> {
    let first = inside.saturating_sub(size) / GRANULE * GRANULE;
    let mut address = inside / GRANULE * GRANULE;
    while address >= first && address != 0 {
        let Some(leaf) = leaf(address) else {
            address = region_start(address).checked_sub(GRANULE)?;
            continue;
        };
        let place = place(address);
        let page = place / IN_WORD / PAGE_WORDS;
        if leaf.touched[page].load(Ordering::Relaxed) == 0 {
            address = address.checked_sub((place - page * PAGE_WORDS * IN_WORD + 1) * GRANULE)?;
            continue;
        }
        let in_word = place % IN_WORD;
        let before =
            leaf.words[place / IN_WORD].load(Ordering::Acquire) & ALL_S & u64::MAX >> (62 - 2 * in_word);
        if before != 0 {
            let after = in_word - (63 - before.leading_zeros() as usize) / 2;
            let found = address - after * GRANULE;
            let start = if is_second(found) { found - GRANULE } else { found };
            // Blocks do not overlap, so only the block at `start` can contain the address.
            return at(start).filter(|block| start >= first && inside - start < block.bytes);
        }
        address = address.checked_sub((in_word + 1) * GRANULE)?;
    }
    None
}

/// Whether a granule whose `S` is 1 is the second granule of its block. This is the case if the run of granules with
/// `S` = 1 that ends with this granule has an even length.
fn is_second(granule: usize) -> bool {
    let (mut address, mut run) = (granule, 0);
    while let Some(leaf) = leaf(address) {
        let place = place(address);
        let in_word = place % IN_WORD;
        let bits = (leaf.words[place / IN_WORD].load(Ordering::Acquire) | ALL_D) << (62 - 2 * in_word);
        let ones = bits.leading_ones() as usize / 2;
        run += ones;
        if ones <= in_word {
            break;
        }
        address = address.wrapping_sub(ones * GRANULE);
    }
    run % 2 == 0
}

/// Calls `each` with every block that has a tag.
pub(super) fn for_each(mut each: impl FnMut(TaggedBlock)) {
    for leaf in leaves() {
        let region = leaf.start.load(Ordering::Relaxed);
        for page in leaf.touched_pages() {
            let words = page * PAGE_WORDS..(page + 1) * PAGE_WORDS;
            let first = region + words.start * IN_WORD * GRANULE;
            // Whether the next granule is the second granule of a block.
            let mut second = leaf.words[words.start].load(Ordering::Relaxed) & S != 0 && is_second(first);
            for word in words {
                let mut starts = leaf.words[word].load(Ordering::Relaxed) & ALL_S;
                if core::mem::take(&mut second) {
                    starts &= !S;
                }
                while starts != 0 {
                    let in_word = starts.trailing_zeros() as usize / 2;
                    starts &= !((S | S << 2) << (2 * in_word));
                    second = in_word == IN_WORD - 1;
                    if let Some(block) = at(region + (word * IN_WORD + in_word) * GRANULE) {
                        each(block);
                    }
                }
            }
        }
    }
}

/// The bytes of the table that are backed by memory.
pub(super) fn bytes() -> usize {
    leaves().map(RegionTags::bytes).sum()
}

impl RegionTags {
    fn bytes(&self) -> usize {
        // A page of lanes covers the same memory as this many pages of words.
        const LANE_PAGES: usize = PAGE / size_of::<u64>() * LANE_GRANULES / (PAGE_WORDS * IN_WORD);
        let mut pages = 0;
        let mut last = usize::MAX;
        for page in self.touched_pages() {
            pages += 1 + usize::from(page / LANE_PAGES != last);
            last = page / LANE_PAGES;
        }
        let details = self.details.get().map_or(0, |details| {
            let touched = details.touched.iter().filter(|touched| touched.load(Ordering::Relaxed) != 0);
            // A page of bytes has 512 bytes of halves.
            touched.count() * (PAGE + PAGE / 8) + size_of_val(&details.touched)
        });
        pages * PAGE + size_of_val(&self.touched) + details
    }
}

fn leaves() -> impl Iterator<Item = &'static RegionTags> {
    core::iter::successors(LEAVES.get(), |leaf| leaf.next.get())
}
