//! The live blocks of a scan dump, and the types in their allocation stacks.

use dmd_analyze::{BlockShape, CallFrame, Dump, TypeCertainty, TypeNames, TypeVerdict};
use hashbrown::HashMap;

use crate::debug_info::{ClassEntries, CodePlace, DebugInfo};
use crate::error::TypedError;
use crate::walk::TypedContents;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapBlock {
    /// The address of the block's first byte.
    pub address: u64,
    /// The requested size in bytes.
    pub requested: u64,
    /// The usable size in bytes: requested size plus slop.
    pub usable: u64,
    /// The index in [`Dump::stacks`] of the stack that allocated the block; `None` if it is unknown.
    pub stack: Option<usize>,
    /// Whether DMD did not record the block, so that its requested size is unknown until a pointer states it.
    pub is_older: bool,
}

/// The blocks of a dump, sorted by address, and the number of blocks left out because they overlap other blocks.
///
/// Threads continue to run while a process writes its blocks, so a dump may contain a freed block and the blocks that
/// took its place. If two blocks overlap, the function keeps the smaller block.
pub(crate) fn scanned_blocks(dump: &Dump) -> Result<(Vec<HeapBlock>, usize), TypedError> {
    let mut all: Vec<HeapBlock> = dump
        .scanned_blocks()?
        .map(|block| HeapBlock {
            address: block.address(),
            requested: block.requested(),
            usable: block.usable(),
            stack: block.stack(),
            is_older: block.is_older(),
        })
        .collect();
    all.sort_by_key(|block| block.address);
    let count = all.len();
    let mut blocks: Vec<HeapBlock> = Vec::with_capacity(count);
    'all: for block in all {
        if block.address.checked_add(block.usable.max(1)).is_none() {
            continue;
        }
        while let Some(last) = blocks.last().filter(|last| last.address + last.usable.max(1) > block.address)
        {
            if last.usable <= block.usable {
                continue 'all;
            }
            blocks.pop();
        }
        blocks.push(block);
    }
    let overlapping = count - blocks.len();
    Ok((blocks, overlapping))
}

/// Finds blocks by address in one or two steps. A binary search in millions of blocks would spend most of its time
/// waiting for memory.
#[derive(Debug)]
pub(crate) struct BlockIndex {
    runs: Vec<BlockRun>,
    /// For each cell: the last block that starts at or before the cell's first address.
    cells: Vec<u32>,
}

/// A group of blocks that start near each other.
#[derive(Debug)]
struct BlockRun {
    start: u64,
    /// The first cell of the run, and the number of its cells.
    first: usize,
    count: usize,
}

/// The logarithm of a cell's size in bytes.
const CELL_BITS: u32 = 9;

/// The minimum distance between two runs, so that a gap needs no cells.
const FAR: u64 = 1 << 14;

impl BlockIndex {
    /// Builds the index. The blocks must be sorted by address.
    pub(crate) fn new(blocks: &[HeapBlock]) -> Self {
        let (mut runs, mut cells): (Vec<BlockRun>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut before = None;
        for (index, block) in blocks.iter().enumerate() {
            if before.is_none_or(|before| block.address - before > FAR) {
                runs.push(BlockRun { start: block.address, first: cells.len(), count: 0 });
            }
            before = Some(block.address);
            let Some(run) = runs.last_mut() else { continue };
            let cell = ((block.address - run.start) >> CELL_BITS) as usize;
            // The cell's entry is the previous block, unless this block starts exactly at the cell's first address.
            let is_first = (block.address - run.start).trailing_zeros() >= CELL_BITS;
            while run.count <= cell {
                let own = is_first && run.count == cell;
                cells.push(if own { index } else { index - 1 } as u32);
                run.count += 1;
            }
        }
        Self { runs, cells }
    }

    /// The index of the block that contains an address.
    pub(crate) fn find(&self, blocks: &[HeapBlock], address: u64) -> Option<usize> {
        let run = &self.runs[self.runs.partition_point(|run| run.start <= address).checked_sub(1)?];
        let cell = ((address - run.start) >> CELL_BITS) as usize;
        let mut index = self.cells[run.first + cell.min(run.count - 1)] as usize;
        while blocks.get(index + 1).is_some_and(|next| next.address <= address) {
            index += 1;
        }
        (address - blocks[index].address < blocks[index].requested.max(1)).then_some(index)
    }
}

/// Whether the contents fit a block of this size.
pub(crate) fn fits(info: &DebugInfo, contents: TypedContents, bytes: u64) -> bool {
    match contents {
        TypedContents::One(of) => info.size(of) == bytes,
        TypedContents::Tail { of, .. } => info.size(of) <= bytes,
        TypedContents::Slice { element, len, .. } => {
            let size = info.size(element);
            size > 0 && bytes.is_multiple_of(size) && len.is_none_or(|len| len <= bytes / size)
        }
        TypedContents::Table { entry } => info.buckets(bytes, entry).is_some(),
        TypedContents::Headed { header, element } => {
            bytes.checked_sub(info.size(header)).is_some_and(|rest| match info.size(element) {
                0 => rest == 0,
                size => rest.is_multiple_of(size),
            })
        }
        TypedContents::Task { raw } => info.task_parts(raw).is_some_and(|parts| parts.bytes == bytes),
        TypedContents::Prefixed { of, before } => before.saturating_add(info.size(of)) <= bytes,
        TypedContents::Chunk { footer: of } | TypedContents::HeadedChunk { header: of } => {
            info.size(of) <= bytes
        }
        TypedContents::FlatChunk { .. } => true,
    }
}

/// The types that the stacks of a dump name.
#[derive(Debug)]
pub(crate) struct StackTypeIndex {
    types: TypeNames,
    /// The possible contents of blocks. There is a list for each verdict. If a code location must select among a
    /// verdict's types, that location has its own list.
    lists: Vec<CandidateTypes>,
    /// The index of each stack's list.
    of_stacks: Vec<u32>,
}

#[derive(Debug)]
struct CandidateTypes {
    all: Vec<TypedContents>,
    /// Whether these types have exactly the verdict's name. Otherwise they have a similar name, and may all be wrong.
    exact: bool,
}

impl StackTypeIndex {
    pub(crate) fn new(dump: &Dump, info: &DebugInfo, has_tail: impl Fn(TypedContents) -> bool) -> Self {
        let types = dump.types();
        let mut lists: Vec<CandidateTypes> = Vec::new();
        let mut of_stacks = Vec::with_capacity(dump.stacks().len());
        let mut by_verdict: HashMap<usize, u32> = HashMap::new();
        let mut by_place: HashMap<(usize, Option<CodePlace>), u32> = HashMap::new();
        let mut entries: Option<ClassEntries> = None;
        for stack in 0..dump.stacks().len() {
            let (Some(number), Some(verdict)) = (types.number(stack), types.get(stack)) else {
                of_stacks.push(u32::MAX);
                continue;
            };
            let whole = *by_verdict.entry(number).or_insert_with(|| {
                lists.push(CandidateTypes {
                    all: contents(verdict, info, &has_tail),
                    exact: is_exact(verdict, info),
                });
                lists.len() as u32 - 1
            });
            let known = &lists[whole as usize];
            let naming = types.naming_frame(stack).filter(|_| !known.all.is_empty());
            let frame = naming.and_then(|index| dump.stack(stack).nth(index));
            let Some(place) = frame.and_then(|frame| place(dump, info, &frame)) else {
                of_stacks.push(whole);
                continue;
            };
            // A single type of a single file needs no choice. Otherwise the code location selects the types.
            let is_clear = place.is_some() && known.all.len() == 1 && info.is_one_file();
            if is_clear {
                of_stacks.push(whole);
                continue;
            }
            let key = (number, place);
            if !by_place.contains_key(&key) {
                let entries = entries.get_or_insert_with(|| ClassEntries::new(info));
                let kept =
                    CandidateTypes { all: known_at(info, place, &known.all, entries), exact: known.exact };
                by_place.insert(key, lists.len() as u32);
                lists.push(kept);
            }
            of_stacks.push(by_place[&key]);
        }
        Self { types, lists, of_stacks }
    }

    /// The verdict about a stack; `None` if the stack is unknown.
    pub(crate) fn verdict(&self, stack: Option<usize>) -> Option<&TypeVerdict> {
        self.types.get(stack?)
    }

    /// The number of the verdict about a stack. Equal verdicts have equal numbers.
    pub(crate) fn number(&self, stack: Option<usize>) -> Option<usize> {
        self.types.number(stack?)
    }

    /// Whether the real type may differ from the stack's type and only have the same layout.
    pub(crate) fn is_same_layout(&self, stack: Option<usize>) -> bool {
        matches!(self.verdict(stack), Some(TypeVerdict::Typed { certainty: TypeCertainty::SameLayout, .. }))
    }

    fn candidates(&self, block: &HeapBlock) -> Option<&CandidateTypes> {
        self.lists.get(*self.of_stacks.get(block.stack?)? as usize)
    }

    /// The contents of a block, if its stack names a type with a layout that fits the block. `None` if several types
    /// with the same name fit.
    pub(crate) fn contents(&self, block: &HeapBlock, info: &DebugInfo) -> Option<TypedContents> {
        let all = &self.candidates(block)?.all;
        let mut fitting = all.iter().filter(|contents| fits(info, **contents, block.requested));
        let first = *fitting.next()?;
        fitting.next().is_none().then_some(first)
    }

    /// Whether the stack names types with a layout, but none of these types fits the block. False if the types only
    /// have a similar name.
    pub(crate) fn misfits(&self, block: &HeapBlock, info: &DebugInfo) -> bool {
        let candidates = self.candidates(block).filter(|candidates| candidates.exact);
        let all = candidates.map_or(&[][..], |candidates| &candidates.all);
        !all.is_empty() && !all.iter().any(|contents| fits(info, *contents, block.requested))
    }
}

/// The code location of a frame. The inner option is `None` for a module with unknown types. The result is `None` if
/// the frame does not name its module.
fn place(dump: &Dump, info: &DebugInfo, frame: &CallFrame<'_>) -> Option<Option<CodePlace>> {
    let (module, offset) = frame.module.zip(frame.offset)?;
    let number = dump.modules().iter().position(|known| known.path == module)?;
    Some(info.place_of_code(if number == 0 { "" } else { module }, offset))
}

/// The contents whose types exist at a code location. Empty for a module with unknown types.
fn known_at(
    info: &DebugInfo,
    place: Option<CodePlace>,
    all: &[TypedContents],
    entries: &ClassEntries,
) -> Vec<TypedContents> {
    let Some(place) = place else { return Vec::new() };
    let types: Vec<_> = all.iter().map(|contents| contents.element()).collect();
    let known = info.known_at(place, &types, entries);
    all.iter().copied().filter(|contents| known.contains(&contents.element())).collect()
}

/// Whether the verdict's types have exactly the verdict's name. Closures may only have a similar name.
fn is_exact(verdict: &TypeVerdict, info: &DebugInfo) -> bool {
    let TypeVerdict::Typed { name, .. } = verdict else { return false };
    !name.contains('{') || info.has_short_name(name) || info.has_short_name(element(name))
}

/// The element type of a slice type's name. Other names are returned unchanged.
fn element(name: &str) -> &str {
    match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(element) => element,
        None if name == "str" => "u8",
        None => name,
    }
}

/// Whether this is the name of `RawTask` of async-task, the type with the pointers to the parts of a task.
fn is_task(name: &str) -> bool {
    name.starts_with("async_task::raw::RawTask<")
}

/// The contents that a verdict names, with types of the program.
fn contents(
    verdict: &TypeVerdict,
    info: &DebugInfo,
    has_tail: impl Fn(TypedContents) -> bool,
) -> Vec<TypedContents> {
    let TypeVerdict::Typed { shape, name, .. } = verdict else { return Vec::new() };
    let element = element(name);
    // In newer versions of Rust, `Box::new` first allocates a `MaybeUninit`, which has no layout of its own.
    let place = name.strip_prefix("MaybeUninit<").and_then(|rest| rest.strip_suffix('>'));
    let name = place.filter(|_| info.with_short_name(name).is_empty()).unwrap_or(name);
    let headed = name.strip_prefix("ThinVec<[").and_then(|rest| rest.strip_suffix("]>"));
    match shape {
        BlockShape::One if headed.is_some() => {
            let header = info.with_name("thin_vec::Header").into_iter();
            let elements = headed.map_or(&[][..], |element| info.with_short_name(element));
            let of = header.flat_map(|header| elements.iter().map(move |of| (header, *of)));
            of.map(|(header, element)| TypedContents::Headed { header, element }).collect()
        }
        BlockShape::One => {
            let of = info.with_short_name(name).iter().map(|of| TypedContents::One(*of));
            of.map(|one| match one {
                TypedContents::One(of) if is_task(name) => TypedContents::Task { raw: of },
                TypedContents::One(of) if has_tail(one) => TypedContents::Tail { of, len: None },
                _ => one,
            })
            .collect()
        }
        BlockShape::Slice | BlockShape::BoxedSlice => {
            let of = info.with_short_name(element).iter();
            of.map(|of| TypedContents::Slice { element: *of, first: 0, len: None }).collect()
        }
        BlockShape::Table => {
            info.with_short_name(name).iter().map(|of| TypedContents::Table { entry: *of }).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_finds_what_a_search_finds() {
        let mut state = 7_u64;
        let mut random = |most: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % most
        };
        for far in [1, 600, 100_000] {
            let mut address = 0x1000 + random(1000);
            let mut blocks = Vec::new();
            for _ in 0..2000 {
                let requested = if random(20) == 0 { random(200_000) } else { random(300) };
                let usable = requested + random(16);
                blocks.push(HeapBlock { address, requested, usable, stack: None, is_older: false });
                address += usable.max(1) + if random(4) == 0 { random(far) } else { 0 };
            }
            let index = BlockIndex::new(&blocks);
            let mut looked = vec![0, 0xfff, u64::MAX, address];
            looked.extend((0..20_000).map(|_| random(address + 1000)));
            looked.extend(
                blocks.iter().flat_map(|block| [block.address - 1, block.address, block.address + 1]),
            );
            for address in looked {
                let before = blocks.partition_point(|block| block.address <= address).checked_sub(1);
                let holds = |at: &usize| address - blocks[*at].address < blocks[*at].requested.max(1);
                assert_eq!(index.find(&blocks, address), before.filter(holds), "{address:x} {far}");
            }
        }
        assert_eq!(BlockIndex::new(&[]).find(&[], 5), None);
    }
}
