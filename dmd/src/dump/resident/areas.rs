//! Cuts the kernel's mappings into areas with one owner each. This is necessary because the kernel joins neighbouring
//! mappings of different owners.

use core::ops::Range;
use std::io;

use super::smaps::{KernelMapping, KernelMappings};
use crate::dump::modules::DumpModules;
use crate::system::own_memory::OwnMemory;
use crate::system::page_map::{PageBytes, PageMap};
use crate::system::pages::{self, DumpVec};
use crate::system::{memory, own_ranges, threads};
use crate::tables::mappings::MAPPINGS;
use crate::tables::thread;
use crate::tables::trace_id::TraceId;

/// The owner of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AreaOwner {
    /// Memory of no known owner.
    Unknown,
    /// The engine itself.
    Engine,
    /// A program or a library: its code, its data, its zeroed data.
    Binary { module: u32 },
    /// A file or shared memory.
    File,
    /// The stack of a thread. `thread` is the index of the thread's name in the list of names.
    Stack { thread: u32 },
    /// The main heap of the C library, which `brk` extends.
    Heap,
    /// A further heap of glibc.
    Arena,
    /// Pages of recorded blocks outside of the heaps above, with the pages of their allocator between them.
    Chunk,
    /// A mapping that the program made itself. `trace` is the stack of the call.
    Mapping { trace: TraceId },
    /// Pages of the kernel.
    Kernel,
}

impl AreaOwner {
    /// Whether a part of the area may be the stack of a thread.
    pub(super) fn may_be_stack(self) -> bool {
        matches!(self, Self::Unknown | Self::Mapping { .. })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Engine => "dmd",
            Self::Binary { .. } => "binary",
            Self::File => "file",
            Self::Stack { .. } => "stack",
            Self::Heap => "heap",
            Self::Arena => "arena",
            Self::Chunk => "chunk",
            Self::Mapping { .. } => "mapping",
            Self::Kernel => "kernel",
        }
    }
}

/// The recorded blocks in an area.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LiveAmount {
    pub(super) blocks: u64,
    /// Usable bytes.
    pub(super) bytes: u64,
    pub(super) pages: PageBytes,
}

impl LiveAmount {
    pub(super) fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.pages.add(other.pages);
    }
}

/// A range of addresses with one owner, inside of one mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryArea {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) owner: AreaOwner,
    /// The index of its mapping.
    pub(super) mapping: usize,
    pub(super) live: LiveAmount,
}

impl MemoryArea {
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// A range of addresses with its owner and its recorded blocks. [`overlay`] gives the areas in the range this owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnedRange {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) owner: AreaOwner,
    pub(super) live: LiveAmount,
}

impl OwnedRange {
    pub(super) fn new(range: Range<usize>, owner: AreaOwner) -> Self {
        Self { start: range.start, end: range.end, owner, live: LiveAmount::default() }
    }
}

fn no_memory() -> io::Error {
    io::ErrorKind::OutOfMemory.into()
}

fn push<T>(list: &mut DumpVec<T>, value: T) -> io::Result<()> {
    if pages::push(list, value) { Ok(()) } else { Err(no_memory()) }
}

/// An area for each mapping. The owner comes from the mapping's name, or from the module at its address.
#[cold]
pub(super) fn mapping_areas(
    mappings: &KernelMappings,
    modules: &DumpModules,
) -> io::Result<DumpVec<MemoryArea>> {
    let mut areas = pages::list();
    for (index, mapping) in mappings.all.iter().enumerate() {
        let owner = owner(mappings.name(mapping), mapping, modules);
        let live = LiveAmount::default();
        let area = MemoryArea { start: mapping.start, end: mapping.end, owner, mapping: index, live };
        push(&mut areas, area)?;
    }
    Ok(areas)
}

#[cold]
fn owner(name: &[u8], mapping: &KernelMapping, modules: &DumpModules) -> AreaOwner {
    let holds = |module: &crate::dump::modules::DumpModule| {
        module.since.is_none() && (module.start..module.end).contains(&mapping.start)
    };
    let module = modules.iter().position(holds).map(|module| AreaOwner::Binary { module: module as u32 });
    match name {
        b"[heap]" => AreaOwner::Heap,
        b"[stack]" => AreaOwner::Stack { thread: 0 },
        _ if name.starts_with(b"[v") => AreaOwner::Kernel,
        _ if name.is_empty() || name.starts_with(b"[") => module.unwrap_or(AreaOwner::Unknown),
        _ => module.unwrap_or(AreaOwner::File),
    }
}

/// Gives the parts of areas in these ranges the owners of the ranges, if `from` returns true for the area's owner.
/// Other areas keep their owner. The ranges are sorted, and do not overlap.
#[cold]
pub(super) fn overlay(
    areas: &DumpVec<MemoryArea>,
    ranges: &[OwnedRange],
    from: fn(AreaOwner) -> bool,
) -> io::Result<DumpVec<MemoryArea>> {
    let mut cut = pages::list();
    let mut ranges = ranges.iter().peekable();
    for area in areas {
        let mut start = area.start;
        while from(area.owner) && start < area.end {
            while ranges.next_if(|range| range.end <= start).is_some() {}
            let Some(range) = ranges.peek().filter(|range| range.start < area.end) else { break };
            if range.start > start {
                push(&mut cut, MemoryArea { start, end: range.start, ..*area })?;
                start = range.start;
            }
            let end = range.end.min(area.end);
            push(&mut cut, MemoryArea { start, end, owner: range.owner, live: range.live, ..*area })?;
            start = end;
        }
        if start < area.end {
            push(&mut cut, MemoryArea { start, ..*area })?;
        }
    }
    Ok(cut)
}

/// The engine's own memory.
#[cold]
pub(super) fn engine_ranges() -> io::Result<DumpVec<OwnedRange>> {
    let mut ranges: DumpVec<OwnedRange> = pages::list();
    let page = memory::page_size() as usize;
    let whole = |range: Range<usize>| {
        OwnedRange::new(range.start..range.end.next_multiple_of(page), AreaOwner::Engine)
    };
    #[cfg(engine = "native")]
    for range in dmd_unwind::mapped_ranges() {
        push(&mut ranges, whole(range))?;
    }
    for range in own_ranges::iter() {
        push(&mut ranges, whole(range))?;
    }
    sort(&mut ranges);
    Ok(ranges)
}

/// The mappings that hooks recorded, and the number of mappings that they could not record.
#[cold]
pub(super) fn program_ranges() -> io::Result<(DumpVec<OwnedRange>, u64)> {
    let mut ranges = pages::list();
    let table = MAPPINGS.hold();
    for range in table.ranges() {
        let owner = AreaOwner::Mapping { trace: range.trace };
        push(&mut ranges, OwnedRange::new(range.start..range.end, owner))?;
    }
    let lost = table.lost();
    Ok((ranges, lost))
}

/// Sorts ranges. A range that overlaps the range before it loses the common part.
#[cold]
pub(super) fn sort(ranges: &mut DumpVec<OwnedRange>) {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut end = 0;
    for range in ranges.iter_mut() {
        range.start = range.start.max(end);
        end = end.max(range.end);
    }
    ranges.retain(|range| range.start < range.end);
}

/// A heap of glibc starts at a multiple of its largest size.
const ARENA: usize = 64 << 20;

/// The further heaps of glibc. Each starts with four words: the address of its arena, the address of the arena's
/// previous heap, its size, and the number of its readable bytes.
#[cold]
pub(super) fn arena_ranges(
    areas: &[MemoryArea],
    mappings: &KernelMappings,
    map: &PageMap,
) -> io::Result<DumpVec<OwnedRange>> {
    let memory = OwnMemory::open();
    let (mut ranges, mut near) = (pages::list(), 0);
    for area in areas {
        if area.owner != AreaOwner::Unknown || !mappings.all[area.mapping].is_writable() {
            continue;
        }
        let mut start = area.start.next_multiple_of(ARENA);
        while start < area.end {
            let mut head = [0; 4 * size_of::<usize>()];
            // Reading a page without memory would give it memory.
            let is_touched = map.bytes(&(start..start + head.len()), &mut near).resident > 0;
            if is_touched && memory.read(start, &mut head) {
                let mut words = [0; 4];
                for (word, bytes) in words.iter_mut().zip(head.as_chunks::<{ size_of::<usize>() }>().0) {
                    *word = usize::from_ne_bytes(*bytes);
                }
                let [arena, before, size, readable] = words;
                let is_whole = |size: usize| size > 0 && size <= ARENA && size.is_multiple_of(4096);
                // The arena's own data is in its first heap, behind these words.
                let has_arena = arena != 0 && arena % ARENA < 4096 && before.is_multiple_of(ARENA);
                if has_arena && is_whole(size) && is_whole(readable) && size <= readable {
                    push(&mut ranges, OwnedRange::new(start..start + ARENA, AreaOwner::Arena))?;
                }
            }
            start += ARENA;
        }
    }
    Ok(ranges)
}

/// The name of a thread, as the kernel has it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadLabel {
    pub(super) name: [u8; dmd_format::tables::THREAD_NAME],
    number: u64,
    stack: usize,
}

impl ThreadLabel {
    pub(super) fn name(&self) -> &[u8] {
        self.name.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// The distance from the thread pointer to the word with the thread's number, in glibc on x86-64. The word is used only
/// if the process has a thread with this number.
const NUMBER: usize = 720;
/// The bytes of glibc's data about a thread, which starts at the thread pointer, on x86-64. The data is at the end of
/// the thread's stack, and the stack ends at a page border.
const CONTROL_BLOCK: usize = 2304;

/// The stacks of all threads but the main thread's, and the names of all threads. The first name is the main thread's.
#[cold]
pub(super) fn thread_stacks(
    areas: &[MemoryArea],
    mappings: &KernelMappings,
) -> io::Result<(DumpVec<OwnedRange>, DumpVec<ThreadLabel>)> {
    let (mut ranges, mut labels) = (pages::list(), pages::list::<ThreadLabel, true>());
    let process = u64::from(std::process::id());
    let mut fits = true;
    threads::for_each_place(|number, (stack, _), text| {
        let mut label = ThreadLabel { number, stack: stack as usize, ..ThreadLabel::default() };
        label.name[..text.len()].copy_from_slice(text);
        fits = fits && pages::push(&mut labels, label);
    });
    if !fits {
        return Err(no_memory());
    }
    // The main thread comes first, and the others in the order of their numbers.
    if let Some(main) = labels.iter().position(|label| label.number == process) {
        labels[..=main].rotate_right(1);
    }
    if let Some(rest) = labels.get_mut(1..) {
        // After its largest number, the kernel gives out small numbers again. So its list may have another order.
        rest.sort_unstable_by_key(|label| label.number);
    }
    let memory = OwnMemory::open();
    let area_of = |address: usize| {
        let at = areas.partition_point(|area| area.end <= address);
        let may_hold = |area: &&MemoryArea| area.start <= address && area.owner.may_be_stack();
        let area = areas.get(at).filter(may_hold);
        area.filter(|area| mappings.all[area.mapping].is_writable())
    };
    let is_free = |ranges: &[OwnedRange], address: usize| {
        let at = ranges.partition_point(|range| range.end <= address);
        ranges.get(at).is_none_or(|range| address < range.start)
    };
    let thread_of = |pointer: usize| {
        let mut number = [0; 4];
        let is_read = cfg!(target_arch = "x86_64") && memory.read(pointer + NUMBER, &mut number);
        let number = u64::from(u32::from_ne_bytes(number));
        let (main, rest) = labels.split_first().filter(|_| is_read)?;
        if main.number == number {
            return Some(0);
        }
        rest.binary_search_by_key(&number, |label| label.number).ok().map(|at| at + 1)
    };
    let mut unnamed = None;
    for pointer in thread::pointers() {
        let Some(area) = area_of(pointer) else { continue };
        let end = if cfg!(target_arch = "x86_64") {
            (pointer + CONTROL_BLOCK).next_multiple_of(4096).min(area.end)
        } else {
            area.end
        };
        let is_in = |label: &ThreadLabel| (area.start..end).contains(&label.stack);
        let thread = thread_of(pointer);
        if thread == Some(0) {
            // The thread pointer of the main thread does not point to the end of its stack, but to memory of the
            // loader.
            continue;
        }
        let thread = thread.or_else(|| labels.iter().position(is_in));
        // Without glibc on x86-64, the name is found by the stack pointer, which the kernel shows only for waiting
        // threads. The stacks of other threads get an empty name.
        let thread = thread.unwrap_or_else(|| *unnamed.get_or_insert(labels.len()));
        let owner = AreaOwner::Stack { thread: thread as u32 };
        push(&mut ranges, OwnedRange::new(area.start..end, owner))?;
    }
    sort(&mut ranges);
    // Threads that never allocated: the engine does not know their thread pointers.
    let known = ranges.len();
    for (thread, label) in labels.iter().enumerate().skip(1) {
        // A stack pointer in a mapping of the program may be in one of many stacks of coroutines.
        if let Some(area) = area_of(label.stack).filter(|area| area.owner == AreaOwner::Unknown)
            && is_free(&ranges[..known], label.stack)
        {
            let owner = AreaOwner::Stack { thread: thread as u32 };
            push(&mut ranges, OwnedRange::new(area.range(), owner))?;
        }
    }
    sort(&mut ranges);
    if unnamed.is_some() {
        push(&mut labels, ThreadLabel::default())?;
    }
    Ok((ranges, labels))
}
