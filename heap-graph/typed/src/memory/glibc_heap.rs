//! The blocks in use in the heap of the GNU C library, from its own structures in memory.
//!
//! A block lies in a chunk. The word before the block has the chunk's size, and flags in its lowest bits. The next
//! chunk's flag says whether a chunk is in use. Chunks in the caches of arenas and threads look as if they were in use,
//! so they are looked up in the caches. Arenas form a ring, and one of them is in the library's data.
//!
//! The structures are those of glibc 2.27 to 2.41. Other versions have other caches. Then no cache is found, and the
//! search finds no blocks, since it would take cached blocks for blocks in use. The memory may be a copy that was made
//! while other threads changed the heap. A chunk that contradicts its neighbours ends the walk of its piece of the heap.

use core::cell::RefCell;

use hashbrown::{HashMap, HashSet};

use super::MemorySource;

/// A block in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MallocBlock {
    /// The address of the block's first byte.
    pub address: u64,
    /// The usable size in bytes.
    pub usable: u64,
}

/// The ranges of memory that the search needs.
#[derive(Clone, Debug, Default)]
pub(super) struct HeapRanges {
    /// The data of the C library.
    pub(super) data: Vec<(u64, u64)>,
    /// The mapping `[heap]`.
    pub(super) heap: Option<(u64, u64)>,
    /// Writable mappings without a file.
    pub(super) anonymous: Vec<(u64, u64)>,
}

const WORD: u64 = 8;
/// The distance from a chunk to its block.
const HEADER: u64 = 16;
/// The smallest chunk.
const SMALLEST: u64 = 32;
const FLAGS: u64 = 7;
const PREVIOUS_IN_USE: u64 = 1;
const MAPPED: u64 = 2;

// Offsets in an arena.
const FAST_LISTS: u64 = 16;
const FAST_LIST_COUNT: u64 = 10;
const TOP: u64 = 96;
const LISTS: u64 = 112;
const LIST_COUNT: u64 = 127;
const NEXT: u64 = 2160;
const ARENA_BYTES: u64 = 2200;

/// The alignment, and the largest size, of a piece of a heap other than the first one.
const HEAP_ALIGNMENT: u64 = 64 << 20;
const MOST_ARENAS: usize = 4096;
const MOST_PIECES: usize = 1 << 16;

/// The most bytes of the library's data that are searched. The kernel may have joined its last part with other mappings.
const MOST_DATA: u64 = 1 << 20;

/// A thread's cache: the counts of its lists, then the first block of each.
#[derive(Clone, Copy)]
struct CacheLayout {
    /// The size of the cache's chunk.
    chunk: u64,
    /// The size of a count.
    count: u64,
}

/// The layouts since glibc 2.30, and before.
const CACHES: [CacheLayout; 2] =
    [CacheLayout { chunk: 0x290, count: 2 }, CacheLayout { chunk: 0x250, count: 1 }];
const CACHE_LISTS: u64 = 64;
const MOST_CACHED: u64 = 1 << 16;

/// The blocks in use; empty if no arena or no cache is found. `None` if there are more than `most` chunks.
pub(super) fn blocks_in_use(
    memory: &dyn MemorySource,
    ranges: &HeapRanges,
    most: usize,
) -> Option<Vec<MallocBlock>> {
    let mut walk = HeapWalk { memory, piece: RefCell::new((0, Vec::new())), chunks: Vec::new(), most };
    let Some(main) = ranges.data.iter().find_map(|range| walk.main_arena(*range)) else {
        return Some(Vec::new());
    };
    let mut arenas = vec![main];
    while let Some(next) = walk.word(arenas[arenas.len() - 1].wrapping_add(NEXT))
        && !arenas.contains(&next)
        && arenas.len() < MOST_ARENAS
    {
        arenas.push(next);
    }
    if let Some((start, end)) = ranges.heap {
        walk.piece(start, end);
    }
    let mut heaps = HashSet::new();
    arenas[1..].iter().for_each(|arena| walk.heaps(*arena, &mut heaps));
    for (start, end) in &ranges.anonymous {
        walk.mapped(*start, *end);
    }
    if walk.chunks.len() > most {
        return None;
    }
    // The first chunk of the heap is the cache of the first thread, which may be empty.
    let first = ranges.heap.and_then(|(start, _)| walk.chunks.iter().find(|(chunk, _)| *chunk == start));
    let has_cache = first.is_some_and(|(_, usable)| CACHES.iter().any(|cache| cache.chunk == usable + WORD));
    let Some(free) = walk.cached(&arenas, has_cache) else { return Some(Vec::new()) };
    let chunks = walk.chunks.iter().filter(|(chunk, _)| !free.contains(&(chunk + HEADER)));
    Some(chunks.map(|(chunk, usable)| MallocBlock { address: chunk + HEADER, usable: *usable }).collect())
}

struct HeapWalk<'m> {
    memory: &'m dyn MemorySource,
    /// The start and the bytes of the memory that was read last.
    piece: RefCell<(u64, Vec<u8>)>,
    /// The chunks that look as if they were in use, with the usable bytes of their blocks.
    chunks: Vec<(u64, u64)>,
    /// The maximum number of chunks. The walk ends after one chunk more.
    most: usize,
}

impl HeapWalk<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let mut word = [0; WORD as usize];
        (self.memory.read(address, &mut word) == word.len()).then(|| u64::from_le_bytes(word))
    }

    /// Like [`word`](Self::word), for addresses in ascending order.
    fn next_word(&self, address: u64) -> Option<u64> {
        const PIECE: usize = 64 << 10;
        let mut piece = self.piece.borrow_mut();
        let (start, bytes) = &mut *piece;
        if address < *start || address.saturating_add(WORD) > *start + bytes.len() as u64 {
            *start = address & !(HEADER - 1);
            bytes.resize(PIECE, 0);
            let read = self.memory.read(*start, bytes);
            bytes.truncate(read);
        }
        let at = usize::try_from(address - *start).ok()?;
        let word = bytes.get(at..at + WORD as usize)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    }

    /// The number of lists of free chunks whose first chunk refers back to the list; 0 if this is no arena. An empty list
    /// refers to itself, and some lists of very large chunks always are empty. `data` has the library's data.
    fn consistent_lists(&self, arena: u64, data: &(u64, Vec<u8>)) -> u64 {
        let word = |address: u64| {
            let at = usize::try_from(address.wrapping_sub(data.0)).ok();
            let word = at.and_then(|at| data.1.get(at..at.checked_add(WORD as usize)?)?.first_chunk());
            word.map_or_else(|| self.word(address), |word| Some(u64::from_le_bytes(*word)))
        };
        let list = |number: u64| arena + LISTS - HEADER + number * 2 * WORD;
        let first = |list: u64| word(list + HEADER);
        let is_empty = |number: u64| first(list(number)) == Some(list(number));
        let refers_back = |number: &u64| {
            let list = list(*number);
            first(list).and_then(|chunk| word(chunk.checked_add(HEADER + WORD)?)) == Some(list)
        };
        if !(LIST_COUNT - 8..LIST_COUNT).any(is_empty) {
            return 0;
        }
        (0..LIST_COUNT).filter(refers_back).count() as u64
    }

    /// The arena in the library's data. An address near it has most of its lists, so the best one counts.
    fn main_arena(&self, (start, end): (u64, u64)) -> Option<u64> {
        // Another thread may have been changing a list when the copy was made.
        const LEAST: u64 = LIST_COUNT - 2;
        let mut data = (start, vec![0; end.saturating_sub(start).min(MOST_DATA) as usize]);
        let read = self.memory.read(start, &mut data.1);
        data.1.truncate(read);
        let places = (0..(read as u64).saturating_sub(ARENA_BYTES)).step_by(WORD as usize);
        let counts = places.map(|at| (self.consistent_lists(start + at, &data), start + at));
        counts.filter(|(count, _)| *count >= LEAST).max().map(|(_, arena)| arena)
    }

    /// Walks the chunks of a piece of a heap.
    fn piece(&mut self, start: u64, end: u64) {
        let mut chunk = start;
        while self.chunks.len() <= self.most
            && let Some(size) = self.size(chunk)
            && size >= SMALLEST
            && chunk.checked_add(size).is_some_and(|next| next <= end)
        {
            let next = chunk + size;
            // The last chunk of a piece is the free rest, or a mark without a chunk behind it.
            let Some(flags) = self.next_word(next.wrapping_add(WORD)) else { break };
            if flags & PREVIOUS_IN_USE != 0 && next < end {
                self.chunks.push((chunk, size - WORD));
            }
            chunk = next;
        }
    }

    fn size(&self, chunk: u64) -> Option<u64> {
        let size = self.next_word(chunk.wrapping_add(WORD))? & !FLAGS;
        size.is_multiple_of(HEADER).then_some(size)
    }

    /// Walks the pieces of an arena that is not in the library's data. The arena itself lies in the first piece. `walked`
    /// has the pieces of all arenas: damaged pieces may refer to each other.
    fn heaps(&mut self, arena: u64, walked: &mut HashSet<u64>) {
        let first = arena & !(HEAP_ALIGNMENT - 1);
        let header = arena - first;
        let Some(top) = self.word(arena.wrapping_add(TOP)) else { return };
        let mut heap = top & !(HEAP_ALIGNMENT - 1);
        for _ in 0..MOST_PIECES {
            // The header has the arena, the piece before, and the number of bytes.
            let [Some(owner), Some(before), Some(bytes)] =
                [0, WORD, 2 * WORD].map(|at| self.word(heap.wrapping_add(at)))
            else {
                return;
            };
            if owner != arena || bytes > HEAP_ALIGNMENT || !walked.insert(heap) {
                return;
            }
            let start =
                if heap == first { arena.saturating_add(ARENA_BYTES) } else { heap.saturating_add(header) };
            let start = start.checked_next_multiple_of(HEADER).unwrap_or(u64::MAX);
            self.piece(start, heap.saturating_add(bytes));
            if heap == first || before == 0 {
                return;
            }
            heap = before;
        }
    }

    /// Walks blocks that have mappings of their own: the chunk starts with a page.
    fn mapped(&mut self, start: u64, end: u64) {
        const PAGE: u64 = 4096;
        let mut chunk = start;
        while chunk < end
            && self.chunks.len() <= self.most
            && let (Some(0), Some(word)) = (self.word(chunk), self.word(chunk + WORD))
        {
            let size = word & !FLAGS;
            let is_chunk = word & FLAGS == MAPPED && size > 0 && size.is_multiple_of(PAGE);
            if !is_chunk || size > end - chunk {
                return;
            }
            self.chunks.push((chunk, size - HEADER));
            chunk += size;
        }
    }

    /// The free blocks in the caches of arenas and threads, and the caches themselves. `None` if no thread has a cache,
    /// unless `has_cache` is true.
    fn cached(&self, arenas: &[u64], mut has_cache: bool) -> Option<HashSet<u64>> {
        let sizes: HashMap<u64, u64> =
            self.chunks.iter().map(|(chunk, usable)| (chunk + HEADER, usable + WORD)).collect();
        let mut free = HashSet::new();
        for arena in arenas {
            for list in 0..FAST_LIST_COUNT {
                let first = self.word(arena.wrapping_add(FAST_LISTS + list * WORD)).unwrap_or(0);
                let size = SMALLEST + list * HEADER;
                let first = if first == 0 { 0 } else { first.wrapping_add(HEADER) };
                // The list refers to chunks, and not to blocks.
                free.extend(self.list(first, size, HEADER, MOST_CACHED, &sizes).unwrap_or_default());
            }
        }
        for (chunk, usable) in &self.chunks {
            if let Some(layout) = CACHES.iter().find(|layout| layout.chunk == usable + WORD)
                && let Some(blocks) = self.thread_cache(chunk + HEADER, *layout, &sizes)
            {
                free.insert(chunk + HEADER);
                free.extend(blocks);
                has_cache = true;
            }
        }
        has_cache.then_some(free)
    }

    /// The blocks of a thread's cache; `None` if the block is no such cache.
    fn thread_cache(&self, cache: u64, layout: CacheLayout, sizes: &HashMap<u64, u64>) -> Option<Vec<u64>> {
        let mut all = Vec::new();
        for list in 0..CACHE_LISTS {
            let at = list * layout.count;
            let counts = self.word(cache + at / WORD * WORD)? >> (at % WORD * 8);
            let count = counts & (u64::MAX >> (64 - layout.count * 8));
            let first = self.word(cache + CACHE_LISTS * layout.count + list * WORD)?;
            if (count == 0) != (first == 0) {
                return None;
            }
            let size = SMALLEST + list * HEADER;
            let blocks = self.list(first, size, 0, count, sizes)?;
            if blocks.len() as u64 != count {
                return None;
            }
            all.extend(blocks);
        }
        // An empty cache cannot be told from a block with zeroes.
        (!all.is_empty()).then_some(all)
    }

    /// The blocks of a list of free blocks of one size. Each has the address of the next one, less `before`. Newer
    /// versions change that address by its place. `None` if a block has another size.
    fn list(
        &self,
        first: u64,
        size: u64,
        before: u64,
        most: u64,
        sizes: &HashMap<u64, u64>,
    ) -> Option<Vec<u64>> {
        let mut blocks = Vec::new();
        let mut block = first;
        while block != 0 && (blocks.len() as u64) < most {
            if sizes.get(&block) != Some(&size) {
                return None;
            }
            blocks.push(block);
            let stored = self.word(block)?;
            let follows = |next: u64| {
                next == 0 || next.checked_add(before).is_some_and(|next| sizes.contains_key(&next))
            };
            let next = Some(stored ^ (block >> 12)).filter(|next| follows(*next)).unwrap_or(stored);
            block = if next == 0 { 0 } else { next.checked_add(before)? };
        }
        Some(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARENA: u64 = 0x7000_0000_0c60;

    /// Memory with one arena in it. All other words are sizes, flags and addresses that make no sense.
    #[derive(Debug)]
    struct NoisyMemory(u64);

    impl NoisyMemory {
        fn word(&self, address: u64) -> u64 {
            let at = address.wrapping_sub(ARENA + LISTS - HEADER);
            let is_list = (HEADER..HEADER + LIST_COUNT * HEADER).contains(&at);
            if is_list {
                return ARENA + LISTS - HEADER + (at - HEADER) / HEADER * HEADER;
            }
            let noise = (address ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let values = [
                0,
                33,
                0x291,
                64 | MAPPED,
                4096 | MAPPED,
                u64::MAX,
                u64::MAX - 15,
                1 << 62 | 1,
                address,
                address.wrapping_add(32),
                noise,
                0x5000_0000_0010,
                HEAP_ALIGNMENT * 9 + 0x30,
                ARENA,
            ];
            // The first chunk of the heap has the size of a cache.
            if address == 0x5000_0000_0008 {
                return 0x251;
            }
            values[noise as usize % values.len()]
        }
    }

    impl MemorySource for NoisyMemory {
        fn read(&self, address: u64, into: &mut [u8]) -> usize {
            for (number, place) in into.chunks_mut(WORD as usize).enumerate() {
                let word = self.word(address.wrapping_add(number as u64 * WORD)).to_le_bytes();
                place.copy_from_slice(&word[..place.len()]);
            }
            into.len()
        }
    }

    #[test]
    fn damaged_structures_end_the_walk() {
        let ranges = HeapRanges {
            data: vec![(ARENA - 0x60, ARENA + 0x1000)],
            heap: Some((0x5000_0000_0000, 0x5000_0002_1000)),
            anonymous: vec![(0x6000_0000_0000, 0x6000_0010_0000)],
        };
        let (start, end) = ranges.heap.unwrap();
        let mut count = 0;
        for seed in 0..500 {
            let blocks = blocks_in_use(&NoisyMemory(seed * 8), &ranges, usize::MAX).unwrap();
            for block in blocks.iter().filter(|block| (start..end).contains(&block.address)) {
                // The last word of a block is in the next chunk.
                assert!(block.address + block.usable <= end + WORD, "{block:?}");
                count += 1;
            }
        }
        assert!(count > 0, "some chunks look right");
    }
    const HEAP: u64 = 0x5000_0000_0000;
    const SECOND: u64 = HEAP_ALIGNMENT << 16;

    /// A heap with a thread's cache, in which one block is free, four blocks, and the free rest. A second arena has one
    /// piece, whose header has the piece itself as the piece before.
    #[derive(Debug)]
    struct SmallHeap {
        words: HashMap<u64, u64>,
    }

    impl SmallHeap {
        fn new(cache: CacheLayout) -> Self {
            let mut words: HashMap<u64, u64> = HashMap::new();
            for arena in [ARENA, SECOND + 32] {
                for number in 0..LIST_COUNT {
                    let list = arena + LISTS - HEADER + number * 2 * WORD;
                    words.extend([(list + HEADER, list), (list + HEADER + WORD, list)]);
                }
            }
            words.extend([(ARENA + NEXT, SECOND + 32), (SECOND + 32 + NEXT, ARENA)]);
            // The top is in the third piece, so the walk does not end at the first one.
            let third = SECOND + 2 * HEAP_ALIGNMENT;
            words.extend([(SECOND + 32 + TOP, third + 128), (third, SECOND + 32), (third + WORD, third)]);
            words.extend([(third + 2 * WORD, 4096), (third + 32 + WORD, 65), (third + 96 + WORD, 65)]);
            words.extend([(third + 160 + WORD, (4096 - 160) | 1)]);
            let blocks = HEAP + cache.chunk;
            words.insert(HEAP + WORD, cache.chunk | 1);
            (0..5).for_each(|block| _ = words.insert(blocks + block * 48 + WORD, 48 | 1));
            words.insert(blocks + 5 * 48 + WORD, 0x1000 | 1);
            // One block of the second list, and no block behind it.
            let counts = HEAP + HEADER;
            words.insert(counts, 1 << (8 * cache.count));
            words.insert(counts + CACHE_LISTS * cache.count + WORD, blocks + 2 * 48 + HEADER);
            Self { words }
        }

        fn blocks(&self, most: usize) -> Option<Vec<u64>> {
            let ranges = HeapRanges {
                data: vec![(ARENA - 0x60, ARENA + 0x1000)],
                heap: Some((HEAP, HEAP + 0x3000)),
                anonymous: Vec::new(),
            };
            let blocks = blocks_in_use(self, &ranges, most)?;
            Some(blocks.iter().map(|block| block.address).collect())
        }
    }

    impl MemorySource for SmallHeap {
        fn read(&self, address: u64, into: &mut [u8]) -> usize {
            for (number, place) in into.chunks_mut(WORD as usize).enumerate() {
                let word = self.words.get(&address.wrapping_add(number as u64 * WORD)).copied().unwrap_or(0);
                place.copy_from_slice(&word.to_le_bytes()[..place.len()]);
            }
            into.len()
        }
    }

    #[test]
    fn caches_of_all_versions_are_known() {
        for cache in CACHES {
            let first = HEAP + cache.chunk + HEADER;
            let third = SECOND + 2 * HEAP_ALIGNMENT + 32 + HEADER;
            let expected = [first, first + 48, first + 3 * 48, first + 4 * 48, third, third + 64];
            assert_eq!(SmallHeap::new(cache).blocks(8).unwrap(), expected);
            assert_eq!(SmallHeap::new(cache).blocks(7), None);
        }
        // The cache of a later version has another size.
        let later = CacheLayout { chunk: 0x300, count: 2 };
        assert!(SmallHeap::new(later).blocks(100).unwrap().is_empty());
    }
}
