//! The resident memory of the process: the owner of each range of addresses, and the blocks in it.
//!
//! The kernel's list of mappings and its page map are read once, before a dump looks at the blocks. The dump then joins
//! each block with its area and its pages: [`MemoryJoin::add`]. The sum of all areas is the kernel's own figure.

mod areas;
mod smaps;

use core::fmt;
use core::ops::Range;
use std::io::{self, Write};

use super::json::JsonWriter;
use super::modules::DumpModules;
use crate::engine::ENGINE;
use crate::system::page_map::{PageBytes, PageMap, PagesWanted};
use crate::system::pages::{self, DumpVec};
use crate::tables::block_table::TableBlock;
use crate::tables::trace_id::TraceId;
use areas::{AreaOwner, LiveAmount, MemoryArea, OwnedRange, ThreadLabel};
use smaps::KernelMappings;

/// The bytes of blocks that are not in memory: bytes that are swapped out, and bytes that were never touched or were
/// given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AbsentBytes {
    pub(crate) swapped: u64,
    pub(crate) untouched: u64,
}

impl AbsentBytes {
    pub(crate) fn add(&mut self, other: Self) {
        self.swapped += other.swapped;
        self.untouched += other.untouched;
    }
}

/// The areas of the process, and its pages.
pub(crate) struct MemoryJoin {
    mappings: KernelMappings,
    pages: PageMap,
    areas: DumpVec<MemoryArea>,
    threads: DumpVec<ThreadLabel>,
    /// The pages of blocks in areas without an owner, in the order in which the dump looks at the blocks.
    chunks: DumpVec<OwnedRange>,
    /// The place of the last block in `pages`, for [`PageMap::bytes`].
    near: usize,
    /// The index of the last block's area.
    area: usize,
    /// Whether a chunk is missing because memory was short.
    is_short: bool,
    /// The number of mappings that hooks could not record.
    lost: u64,
}

/// The reason why the resident memory is not known: the kernel's file, and its error.
pub(crate) struct MemoryUnreadable {
    file: &'static str,
    error: io::Error,
}

impl fmt::Display for MemoryUnreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.error)
    }
}

/// A gap of at most this many bytes between the pages of two blocks counts as memory of the allocator.
const BETWEEN_BLOCKS: usize = 64 << 10;

impl MemoryJoin {
    #[cold]
    pub(crate) fn read(modules: &DumpModules) -> Result<Self, MemoryUnreadable> {
        let unreadable = |file| move |error| MemoryUnreadable { file, error };
        let mappings = KernelMappings::read().map_err(unreadable("/proc/self/smaps"))?;
        let wanted = mappings.all.iter().filter(|mapping| mapping.has_pages());
        let wanted = wanted.map(|mapping| PagesWanted {
            range: mapping.range(),
            resident: mapping.resident,
            is_anonymous: mappings.is_anonymous(mapping),
        });
        let pages = PageMap::read(wanted).map_err(unreadable("/proc/self/pagemap"))?;
        let (areas, threads, lost) = areas(&mappings, modules, &pages).map_err(unreadable("memory"))?;
        let chunks = pages::list();
        Ok(Self { mappings, pages, areas, threads, chunks, near: 0, area: 0, is_short: false, lost })
    }

    /// Forgets all blocks.
    pub(crate) fn restart(&mut self) {
        self.chunks.clear();
        self.is_short = false;
        self.areas.iter_mut().for_each(|area| area.live = LiveAmount::default());
    }

    /// Adds a block to its area. Returns the bytes of the block that are not in memory.
    #[inline]
    pub(crate) fn add(&mut self, address: usize, block: TableBlock) -> AbsentBytes {
        let usable = block.usable();
        let range = address..address.saturating_add(usable);
        let mut pages = self.pages.bytes(&range, &mut self.near);
        let mut bytes = usable as u64;
        if block.sampled {
            // The block represents other blocks. The same part of them is assumed to be in memory.
            let all = ENGINE.usable_of(block) as u64;
            let part = |part: u64| (part as f64 / usable.max(1) as f64 * all as f64).round() as u64;
            let inside = PageBytes { resident: part(pages.resident), swapped: part(pages.swapped) };
            self.add_to_area(&range, LiveAmount { blocks: 1, bytes: all, pages: inside });
            if ENGINE.mean() == 0 {
                // Without a sample by bytes, the dump contains the bytes of all blocks that this block represents.
                (pages, bytes) = (inside, all);
            }
        } else {
            self.add_to_area(&range, LiveAmount { blocks: 1, bytes, pages });
        }
        let untouched = bytes.saturating_sub(pages.resident + pages.swapped);
        AbsentBytes { swapped: pages.swapped, untouched }
    }

    fn add_to_area(&mut self, range: &Range<usize>, live: LiveAmount) {
        let holds = |area: &MemoryArea| area.range().contains(&range.start);
        if !self.areas.get(self.area).is_some_and(holds) {
            self.area = self.areas.partition_point(|area| area.end <= range.start);
        }
        let Some(area) = self.areas.get_mut(self.area).filter(|area| holds(area)) else { return };
        if area.owner != AreaOwner::Unknown {
            return area.live.add(live);
        }
        let page = self.pages.page();
        let (start, end) = match ENGINE.mean() {
            0 => {
                let start = (range.start / page * page).max(area.start);
                (start, range.end.next_multiple_of(page).min(area.end))
            }
            // A sample by bytes has too few blocks to show which part of the area the allocator uses.
            _ => (area.start, area.end),
        };
        if let Some(last) = self.chunks.last_mut()
            && (last.start..=last.end.saturating_add(BETWEEN_BLOCKS)).contains(&start)
            && last.start >= area.start
        {
            last.end = last.end.max(end);
            last.live.add(live);
            return;
        }
        let chunk = OwnedRange { start, end, owner: AreaOwner::Chunk, live };
        self.is_short |= !pages::push(&mut self.chunks, chunk);
    }

    /// Ends the join, after all blocks were added.
    #[cold]
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let mut chunks = core::mem::replace(&mut self.chunks, pages::list());
        areas::sort(&mut chunks);
        self.areas = areas::overlay(&self.areas, &chunks, |owner| owner == AreaOwner::Unknown)?;
        if self.is_short { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
    }

    /// The stacks that made mappings.
    pub(super) fn traces(&self) -> impl Iterator<Item = TraceId> {
        self.areas.iter().filter_map(|area| match area.owner {
            AreaOwner::Mapping { trace } if trace != TraceId::NONE => Some(trace),
            _ => None,
        })
    }

    /// Writes the areas. `key` returns the key of a stack of [`traces`](Self::traces).
    pub(super) fn write<W: Write>(
        &self,
        json: &mut JsonWriter<W>,
        modules: &DumpModules,
        key: impl Fn(TraceId) -> Option<u32>,
    ) -> io::Result<()> {
        json.open("mappings", '{')?;
        json.number("pageSize", self.pages.page() as u64)?;
        let sum = || self.mappings.all.iter().map(|mapping| mapping.resident).sum();
        json.number("resident", self.mappings.resident.unwrap_or_else(sum))?;
        let (amounts, is_sum) = self.amounts()?;
        if self.mappings.is_changing || !is_sum {
            json.boolean("changing", true)?;
        }
        if self.lost > 0 {
            json.number("lost", self.lost)?;
        }
        json.open("list", '[')?;
        for (area, pages) in self.areas.iter().zip(&amounts) {
            let mapping = &self.mappings.all[area.mapping];
            json.item('{')?;
            json.inline_hex("start", area.start)?;
            json.inline_number("bytes", area.range().len() as u64)?;
            json.inline_text("access", &mapping.access)?;
            json.inline_text("owner", area.owner.name().as_bytes())?;
            match area.owner {
                AreaOwner::Binary { module } => {
                    if let Some(module) = modules.iter().nth(module as usize) {
                        json.inline_text("name", &module.path)?;
                    }
                }
                AreaOwner::Stack { thread } => {
                    let label = self.threads.get(thread as usize).copied().unwrap_or_default();
                    json.inline_text("name", label.name())?;
                }
                _ if !self.mappings.name(mapping).is_empty() => {
                    json.inline_text("name", self.mappings.name(mapping))?;
                }
                _ => {}
            }
            if let AreaOwner::Mapping { trace } = area.owner
                && let Some(key) = key(trace)
            {
                json.inline_base32("alloc", key)?;
            }
            // The kernel counts `LazyFree` only for a whole mapping, so the first area of the mapping gets the sum.
            let is_first = area.start == mapping.start;
            for (name, bytes) in [
                ("resident", pages.resident),
                ("swapped", pages.swapped),
                ("lazyFree", if is_first { mapping.lazy_free } else { 0 }),
                ("blocks", area.live.blocks),
                ("live", area.live.bytes),
                ("liveResident", area.live.pages.resident),
                ("liveSwapped", area.live.pages.swapped),
            ] {
                if bytes > 0 {
                    json.inline_number(name, bytes)?;
                }
            }
            json.end_inline('}')?;
        }
        json.end(']')?;
        json.end('}')
    }

    /// The pages of each area. The kernel's list contains the sum for each mapping; the page map, which is read later,
    /// shows the parts. In the meantime the engine, and perhaps other threads, have touched pages. If the parts of a
    /// mapping exceed its sum, the difference is subtracted from the engine's areas. Also returns whether the parts of
    /// all mappings then are their sums.
    #[cold]
    fn amounts(&self) -> io::Result<(DumpVec<PageBytes>, bool)> {
        let mut amounts: DumpVec<PageBytes> = pages::list();
        if amounts.try_reserve_exact(self.areas.len()).is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let (mut near, mut is_sum) = (0, true);
        for parts in self.areas.chunk_by(|area, next| area.mapping == next.mapping) {
            let mapping = &self.mappings.all[parts[0].mapping];
            let whole = PageBytes { resident: mapping.resident, swapped: mapping.swapped };
            if let [_] = parts {
                amounts.push(whole);
                continue;
            }
            let first = amounts.len();
            amounts.extend(parts.iter().map(|area| self.pages.bytes(&area.range(), &mut near)));
            let parts_of = &mut amounts[first..];
            let sum = parts_of.iter().map(|pages| pages.resident).sum::<u64>();
            let mut late = sum.saturating_sub(whole.resident);
            for (area, pages) in parts.iter().zip(parts_of.iter_mut()) {
                if area.owner == AreaOwner::Engine {
                    let taken = late.min(pages.resident);
                    pages.resident -= taken;
                    late -= taken;
                }
            }
            // The kernel does not count huge pages of a reserve among the resident pages.
            is_sum &= mapping.has_huge_reserve() || late == 0 && sum >= whole.resident;
        }
        Ok((amounts, is_sum))
    }
}

/// The areas of all mappings, the names of threads, and the number of mappings that hooks could not record.
fn areas(
    mappings: &KernelMappings,
    modules: &DumpModules,
    pages: &PageMap,
) -> io::Result<(DumpVec<MemoryArea>, DumpVec<ThreadLabel>, u64)> {
    let mut all = areas::mapping_areas(mappings, modules)?;
    if ENGINE.is_preloaded() {
        // The areas of the engine's own library belong to the engine.
        let here = (&raw const ENGINE).addr();
        let holds = |module: &super::modules::DumpModule| {
            module.since.is_none() && (module.start..module.end).contains(&here)
        };
        let own = modules.iter().position(holds).map(|own| AreaOwner::Binary { module: own as u32 });
        for area in all.iter_mut().filter(|area| Some(area.owner) == own) {
            area.owner = AreaOwner::Engine;
        }
    }
    let is_unknown = |owner| owner == AreaOwner::Unknown;
    let all = areas::overlay(&all, &areas::engine_ranges()?, is_unknown)?;
    let is_mapped = |owner| matches!(owner, AreaOwner::Unknown | AreaOwner::File);
    let (mapped, lost) = areas::program_ranges()?;
    let all = areas::overlay(&all, &mapped, is_mapped)?;
    let (stacks, threads) = areas::thread_stacks(&all, mappings)?;
    let all = areas::overlay(&all, &stacks, AreaOwner::may_be_stack)?;
    let arenas = areas::arena_ranges(&all, mappings, pages)?;
    let all = areas::overlay(&all, &arenas, is_unknown)?;
    Ok((all, threads, lost))
}
