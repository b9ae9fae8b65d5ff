//! Infers the types of all blocks: first from their stacks, then from the pointers of typed values to them.
//!
//! A pointer counts only if it leads to the start of a block (or to the control bytes of a hash table), and if the
//! block's size fits. If pointers contradict a stack or each other, all of them are weighed
//! ([`evidence`](crate::evidence)): a pointer may be a stale word that leads to a freed block, whose place another
//! block has now.

mod chunks;
mod headed_chunks;
mod outgrown;
mod prefixed;
mod weigh;

use std::collections::{BTreeSet, VecDeque};

use dmd_analyze::Dump;
use hashbrown::HashMap;

use crate::agreement::Agreement;
use crate::arena::{ArenaValues, ChunkUse};
use crate::blocks::{self, BlockIndex, HeapBlock, StackTypeIndex, fits};
use crate::debug_info::{DebugInfo, TypeId, TypeKind};
use crate::error::TypedError;
use crate::evidence::{Evidence, PointerClaim, TextEvidence};
use crate::memory::{MemoryReader, MemorySource};
use crate::merged::MergedFunctions;
use crate::path::FieldPathId;
use crate::plan::{PlanGoal, PointerRole};
use crate::threads::ThreadWords;
use crate::views::{is_changed, is_list_of, is_same, is_text_of, is_view, more_precise};
use crate::walk::{FoundPointer, PointerTarget, TypedContents, ValueWalk};

use prefixed::{AllocatingTypes, InnerPointers};

/// The size of the largest static that is read, in bytes.
const LARGEST_STATIC: u64 = 1 << 20;

/// The source of a block's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeOrigin {
    /// The block has no type, or a type without a layout.
    Nobody,
    /// The block's allocation stack.
    Stack,
    /// A pointer to the block.
    Owner,
}

/// A pointer from a block, or from a static, to a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockEdge {
    pub(crate) to: u32,
    /// The path of the field; `None` for a word of a block without a layout.
    pub(crate) path: Option<FieldPathId>,
}

/// A heap whose blocks have types.
#[derive(Debug)]
pub struct TypedHeap<'i> {
    pub(crate) blocks: Vec<HeapBlock>,
    pub(crate) index: BlockIndex,
    pub(crate) contents: Vec<Option<TypedContents>>,
    origins: Vec<TypeOrigin>,
    /// For each block of bytes, the evidence that it is text.
    pub(crate) text: Vec<TextEvidence>,
    pub(crate) edges: Vec<BlockEdge>,
    /// The start of each block's edges, and the end of all edges.
    pub(crate) firsts: Vec<usize>,
    /// The edges from statics, each with the index of its static.
    pub(crate) from_statics: Vec<(usize, BlockEdge)>,
    /// Blocks from which, together with the statics, all other blocks are reachable.
    pub(crate) not_held: Vec<usize>,
    /// The blocks that threads hold.
    pub(crate) from_threads: ThreadWords,
    pub(crate) stacks: StackTypeIndex,
    pub(crate) walk: ValueWalk<'i>,
    /// The values that pointers reach in the chunks of arenas.
    pub(crate) values: ArenaValues,
    /// The used parts of chunks, by block.
    pub(crate) chunk_uses: HashMap<usize, ChunkUse>,
    agreement: Agreement,
    overlapping: usize,
}

/// The state of an inference.
struct Inference<'i, 'm, 'd> {
    heap: TypedHeap<'i>,
    reader: MemoryReader<'m>,
    merged: MergedFunctions<'d>,
    threads: Vec<u64>,
    queue: VecDeque<u32>,
    evidence: Evidence,
    inner: InnerPointers,
    allocating: AllocatingTypes<'d>,
    /// For each `LeafNode` type, the `InternalNode` type that may replace it; `None` if there is none.
    inner_nodes: HashMap<TypeId, Option<TypeId>>,
    /// The values in arenas that are still to be read: address, contents and size in bytes.
    values: Vec<(u64, TypedContents, u64)>,
    /// Blocks of bytes with references to values in them.
    with_values: BTreeSet<usize>,
}

/// The purpose of reading statics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StaticsPass {
    /// Finds types behind pointers that are certainly live.
    Sure,
    /// Finds lengths. A pointer that may be a stale word counts if it fits a block.
    Fitting,
    /// Finds the values of arenas.
    Values,
    Edges,
}

impl<'i> TypedHeap<'i> {
    /// Infers the types of the blocks of a dump in scan mode. The dump's frames must have been looked up
    /// ([`Dump::symbolize`]). `memory` contains the program's memory at the same moment. `bias` is the difference
    /// between addresses in memory and addresses in the file of `info`. Blocks without pointers, such as strings, are
    /// searched only for the fields of arenas. But a read of several adjacent blocks may copy such blocks for a moment.
    ///
    /// # Errors
    ///
    /// Returns [`TypedError::Dump`] if the mode of the dump is not scan.
    pub fn new(
        dump: &Dump,
        info: &'i DebugInfo,
        bias: u64,
        memory: &dyn MemorySource,
    ) -> Result<Self, TypedError> {
        let (blocks, overlapping) = blocks::scanned_blocks(dump)?;
        let walk = ValueWalk::new(info, bias, PlanGoal::Pointers);
        let has_tail = |contents| matches!(contents, TypedContents::One(of) if walk.plans.has_tail(of));
        let stacks = StackTypeIndex::new(dump, info, has_tail);
        let contents: Vec<_> = blocks.iter().map(|block| stacks.contents(block, info)).collect();
        let origin =
            |contents: &Option<TypedContents>| contents.map_or(TypeOrigin::Nobody, |_| TypeOrigin::Stack);
        let origins = contents.iter().map(origin).collect();
        let blocks_count = blocks.len();
        let heap = Self {
            index: BlockIndex::new(&blocks),
            blocks,
            text: vec![TextEvidence::Unknown; blocks_count],
            contents,
            origins,
            edges: Vec::new(),
            firsts: Vec::new(),
            from_statics: Vec::new(),
            not_held: Vec::new(),
            from_threads: ThreadWords::default(),
            stacks,
            walk,
            values: ArenaValues::default(),
            chunk_uses: HashMap::new(),
            agreement: Agreement::default(),
            overlapping,
        };
        let queue =
            (0..heap.blocks.len() as u32).filter(|block| heap.contents[*block as usize].is_some()).collect();
        let (reader, all_threads) = (MemoryReader::new(memory), memory.threads());
        let threads = all_threads.iter().filter_map(|thread| thread.thread_pointer).collect();
        let merged = MergedFunctions::new(dump);
        let evidence = Evidence::new(heap.blocks.len());
        let (inner, allocating) = (InnerPointers::default(), AllocatingTypes::new(dump));
        let (inner_nodes, values, with_values) = (HashMap::new(), Vec::new(), BTreeSet::new());
        let mut work = Inference {
            heap,
            reader,
            merged,
            threads,
            queue,
            evidence,
            inner,
            allocating,
            inner_nodes,
            values,
            with_values,
        };
        work.find_chunks();
        work.statics(StaticsPass::Sure);
        work.spread();
        work.settle();
        // A static that is initialized late may still be uninitialized. Its pointers count if they fit the known
        // blocks.
        work.statics(StaticsPass::Fitting);
        work.spread();
        work.settle();
        work.find_prefixed();
        work.find_values(memory);
        work.finish();
        work.statics(StaticsPass::Edges);
        let Inference { mut heap, mut reader, .. } = work;
        let blocks = (&heap.index, &heap.blocks[..]);
        heap.from_threads = ThreadWords::read(dump, memory, &mut reader, blocks, all_threads);
        if heap.chunk_uses.len() != heap.chunks() {
            heap.chunk_uses = heap.find_chunk_uses(memory);
        }
        heap.not_held = heap.find_not_held();
        heap.from_threads.keep(&heap.not_held, dump);
        Ok(heap)
    }

    /// Whether debug information has the fields of types. Without them, holders, waste and tasks are unknown.
    pub fn knows_fields(&self) -> bool {
        self.walk.info().vtable_count() > 0
    }

    /// The blocks, sorted by address. They do not overlap.
    pub fn blocks(&self) -> &[HeapBlock] {
        &self.blocks
    }

    /// The number of blocks of the dump that overlap a smaller block, and are left out.
    pub fn overlapping(&self) -> usize {
        self.overlapping
    }

    /// The source of the type of the block with this index.
    pub fn origin(&self, block: usize) -> TypeOrigin {
        self.origins[block]
    }

    /// Whether the block has a type, from its stack or from an owner.
    pub fn is_typed(&self, block: usize) -> bool {
        let verdict = || self.stacks.verdict(self.blocks[block].stack);
        self.contents[block].is_some() || verdict().is_some_and(|verdict| verdict.type_name().is_some())
    }

    /// Whether the block's size contradicts the type that its stack names.
    pub fn misfits(&self, block: usize) -> bool {
        self.contents[block].is_none() && self.stacks.misfits(&self.blocks[block], self.walk.info())
    }

    /// The size of the prefix before a block's value; `None` if the value has no prefix.
    pub(crate) fn prefix(&self, block: usize) -> Option<u64> {
        match self.contents[block]? {
            TypedContents::Prefixed { before, .. } => Some(before),
            _ => None,
        }
    }

    /// The agreement of stacks and owners.
    pub fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    /// The pointers of a block: the index of the target block, and the path of the field. The path is `None` for a
    /// word of a block without a layout.
    pub fn edges(&self, block: usize) -> impl Iterator<Item = (usize, Option<String>)> {
        let info = self.walk.info();
        self.edges[self.firsts[block]..self.firsts[block + 1]]
            .iter()
            .map(move |edge| (edge.to as usize, edge.path.map(|path| self.walk.paths.text(path, info))))
    }

    /// The pointers of statics and thread-locals: the name of the static with the path of the field, and the index of
    /// the target block.
    pub fn statics(&self) -> impl Iterator<Item = (String, usize)> {
        let all = self.from_statics.iter().enumerate();
        all.map(move |(at, (_, edge))| (self.static_text(at), edge.to as usize))
    }

    /// The static or thread-local of an edge, with the path of its field.
    pub(crate) fn static_text(&self, at: usize) -> String {
        let info = self.walk.info();
        let (index, edge) = &self.from_statics[at];
        let name = info.static_name(&info.statics()[*index]);
        let path = edge.path.map(|path| self.walk.paths.text(path, info)).unwrap_or_default();
        format!("{name}{path}")
    }
}

impl Inference<'_, '_, '_> {
    /// Reads the contents of a block and finds its pointers. Returns whether the block could contain pointers.
    fn read_pointers(&mut self, block: usize) -> bool {
        let Some(contents) = self.heap.contents[block] else { return false };
        if !self.heap.walk.has_any(contents) {
            return false;
        }
        let HeapBlock { address, requested, .. } = self.heap.blocks[block];
        self.heap.walk.block(self.reader.read(address, requested), contents);
        // `vec![..]` allocates a boxed array, which may have more elements than its vector. Only an owner has the
        // vector's length, so without an owner any pointer may be in an element that the vector no longer has.
        if self.is_array_by_stack(block) && !self.evidence.is_confirmed(block) {
            self.heap.walk.found.iter_mut().for_each(|found| found.sure = false);
        }
        true
    }

    fn is_array_by_stack(&self, block: usize) -> bool {
        let Some(TypedContents::One(of)) = self.heap.contents[block] else { return false };
        self.heap.origins[block] == TypeOrigin::Stack
            && matches!(self.heap.walk.info().get(of).kind, TypeKind::Array(_, Some(_)))
    }

    fn statics(&mut self, pass: StaticsPass) {
        let info = self.heap.walk.info();
        for (index, one) in info.statics().iter().enumerate() {
            let Some(of) = info.type_at(one.of) else { continue };
            let size = info.size(of);
            if size > LARGEST_STATIC || !self.heap.walk.has_any(TypedContents::One(of)) {
                continue;
            }
            for address in info.places(one, self.heap.walk.bias, &self.threads) {
                self.heap.walk.part(self.reader.read(address, size), of);
                let found = core::mem::take(&mut self.heap.walk.found);
                for pointer in &found {
                    match pass {
                        StaticsPass::Sure => self.take_over(None, pointer),
                        StaticsPass::Fitting => self.take_over_length(pointer),
                        StaticsPass::Values => self.add_value(pointer),
                        StaticsPass::Edges => {
                            let edge = self.edge(pointer);
                            self.heap.from_statics.extend(edge.map(|edge| (index, edge)));
                        }
                    }
                }
                self.heap.walk.found = found;
            }
        }
    }

    /// Follows the pointers of typed blocks until no more blocks get types.
    fn spread(&mut self) {
        while let Some(block) = self.queue.pop_front() {
            if self.read_pointers(block as usize) {
                let found = core::mem::take(&mut self.heap.walk.found);
                for pointer in &found {
                    self.take_over(Some(block), pointer);
                }
                self.heap.walk.found = found;
            }
        }
    }

    /// The target block of a pointer, and the contents that the pointer names. The contents are `None` if the pointer
    /// names no type, or if the size of the block does not fit.
    fn find_target(&mut self, pointer: &FoundPointer) -> Option<(usize, Option<TypedContents>)> {
        let info = self.heap.walk.info();
        let index = self.heap.index.find(&self.heap.blocks, pointer.value)?;
        self.find_size(index, pointer);
        let block = &self.heap.blocks[index];
        let said = match pointer.target {
            PointerTarget::Opaque => None,
            PointerTarget::Table { entry, buckets: count } => {
                let found = info.buckets(block.requested, entry);
                let fits = |(buckets, control)| buckets == count && block.address + control == pointer.value;
                found.is_some_and(fits).then_some(TypedContents::Table { entry })
            }
            PointerTarget::Start { contents, bytes, .. } if pointer.value == block.address => {
                let size = block.requested;
                let fitting = bytes.is_none_or(|bytes| bytes == size) && fits(info, contents, size);
                match contents {
                    TypedContents::One(of) if !fitting => self.headed_chunk(index, of).or_else(|| {
                        self.inner_node(of).map(TypedContents::One).filter(|inner| fits(info, *inner, size))
                    }),
                    _ => fitting.then_some(contents),
                }
            }
            PointerTarget::Start { contents: TypedContents::One(of), .. }
                if self.is_footer(index, pointer.value, of) =>
            {
                Some(TypedContents::Chunk { footer: of })
            }
            // The pointer may have the type of the value's first part, so it does not change the value's type.
            PointerTarget::Start { contents: TypedContents::One(_), .. } => {
                let before = self.heap.prefix(index);
                let is_value = before.is_some_and(|before| block.address + before == pointer.value);
                self.heap.contents[index].filter(|_| is_value)
            }
            PointerTarget::Start { .. } => None,
        };
        Some((index, said))
    }

    /// Finds the requested size of a block that DMD did not record: the largest one that the allocator rounds up to the
    /// usable size, and that fits a pointer to the block.
    fn find_size(&mut self, index: usize, pointer: &FoundPointer) {
        /// The allocator's sizes differ by 16 bytes, and it gives out a free block that is one step larger as a whole. The
        /// sizes of blocks with mappings of their own differ by a page.
        const STEP: u64 = 32;
        const HEADER: u64 = 16;
        const SMALL: u64 = 40;
        const PAGE: u64 = 4096;
        let block = self.heap.blocks[index];
        // A pointer to the inside of a block fits no size, except the pointer to a table.
        let may_fit = pointer.value == block.address || matches!(pointer.target, PointerTarget::Table { .. });
        if !block.is_older || !may_fit || self.heap.contents[index].is_some() {
            return;
        }
        let step = match block.usable {
            ..=SMALL => SMALL + 1,
            usable if (usable + HEADER).is_multiple_of(PAGE) => PAGE,
            _ => STEP,
        };
        let inner = match pointer.target {
            PointerTarget::Start { contents: TypedContents::One(of), .. } => self.inner_node(of),
            _ => None,
        };
        let info = self.heap.walk.info();
        let is_size = |size: &u64| match pointer.target {
            PointerTarget::Table { entry, buckets: count } => {
                let fits = |(buckets, control)| buckets == count && block.address + control == pointer.value;
                info.buckets(*size, entry).is_some_and(fits)
            }
            PointerTarget::Start { contents, bytes, .. } if pointer.value == block.address => {
                bytes.is_none_or(|bytes| bytes == *size) && fits(info, contents, *size)
                    || inner.is_some_and(|inner| info.size(inner) == *size)
            }
            _ => false,
        };
        let least = block.usable.saturating_sub(step - 1);
        if let Some(size) = (least..=block.usable).rev().find(is_size) {
            self.heap.blocks[index].requested = size;
        }
    }

    /// The `InternalNode` type for the `LeafNode` type of a B-tree. Pointers to both kinds of nodes have the
    /// `LeafNode` type.
    fn inner_node(&mut self, leaf: TypeId) -> Option<TypeId> {
        let info = self.heap.walk.info();
        *self.inner_nodes.entry(leaf).or_insert_with(|| {
            let rest = info.name(leaf).strip_prefix("alloc::collections::btree::node::LeafNode")?;
            let name = format!("alloc::collections::btree::node::InternalNode{rest}");
            info.with_name_and_part(&name, leaf)
        })
    }

    /// Gives the target of a pointer the type that the pointer names, if the target's type is unknown or less precise.
    /// Stores a contradiction until all types are known. `holder` is the block with the pointer; `None` for a static.
    fn take_over(&mut self, holder: Option<u32>, pointer: &FoundPointer) {
        let Some((index, said)) = self.find_target(pointer) else { return };
        let is_evidence = pointer.sure && pointer.certain();
        let Some(said) = said else {
            if is_evidence {
                self.note_header(index, pointer);
                self.note_inner(index, pointer);
            }
            return;
        };
        let info = self.heap.walk.info();
        let holding = pointer.holding();
        let next = match self.heap.contents[index] {
            None => {
                if is_evidence {
                    self.evidence.confirm(index);
                }
                self.heap.origins[index] = TypeOrigin::Owner;
                said
            }
            Some(known) if is_same(info, known, said) => {
                let was_confirmed = !is_evidence || self.evidence.confirm(index);
                self.heap.text[index].add(holding, pointer.sure);
                match more_precise(known, said).filter(|_| pointer.sure) {
                    Some(next) => next,
                    None if !was_confirmed && self.is_array_by_stack(index) => known,
                    None => return,
                }
            }
            // Both types describe the same memory, and "text" is more precise than "bytes".
            Some(known) if is_text_of(info, known, said) => {
                self.heap.origins[index] = TypeOrigin::Owner;
                said
            }
            Some(known)
                if is_evidence && holding != PointerRole::Borrows && is_list_of(info, known, said) =>
            {
                said
            }
            Some(known) => {
                if is_evidence && (!is_view(info, known, said) || is_changed(info, known, said, holding)) {
                    let claim =
                        PointerClaim { holder, contents: said, owns: holding != PointerRole::Borrows };
                    self.evidence.claim(index, claim);
                }
                return;
            }
        };
        self.heap.text[index].add(holding, pointer.sure);
        self.heap.contents[index] = Some(next);
        self.queue.push_back(index as u32);
    }

    /// Records that a pointer leads to the start of a block that is larger than the pointer's type.
    fn note_header(&mut self, index: usize, pointer: &FoundPointer) {
        let block = self.heap.blocks[index];
        if let PointerTarget::Start { contents: TypedContents::One(of), .. } = pointer.target
            && pointer.value == block.address
        {
            let info = self.heap.walk.info();
            self.evidence.note_size(info.same_as(of), block.requested > info.size(of));
        }
    }

    /// Gives the target of a pointer the length that the pointer names, if the target's type is already known.
    fn take_over_length(&mut self, pointer: &FoundPointer) {
        let Some((index, Some(said))) = self.find_target(pointer) else { return };
        let Some(known) = self.heap.contents[index] else { return };
        let info = self.heap.walk.info();
        let is_list = pointer.holding() != PointerRole::Borrows && is_list_of(info, known, said);
        let longer = more_precise(known, said).filter(|_| is_same(info, known, said));
        if let Some(next) = longer.or(is_list.then_some(said)) {
            self.heap.contents[index] = Some(next);
            self.queue.push_back(index as u32);
        }
    }

    /// Collects the edges and compares stacks with owners, now that all types are known.
    fn finish(&mut self) {
        for block in 0..self.heap.blocks.len() {
            self.heap.firsts.push(self.heap.edges.len());
            if self.read_pointers(block) {
                let found = core::mem::take(&mut self.heap.walk.found);
                for pointer in &found {
                    self.compare(pointer);
                    let edge = self.edge(pointer).filter(|edge| edge.to as usize != block);
                    self.heap.edges.extend(edge);
                }
                self.heap.walk.found = found;
            } else if self.heap.contents[block].is_none() && !self.is_text(block) {
                self.add_word_edges(block);
                self.heap.agreement.without_layout += 1;
            }
            // The addresses of an arena's values are unknown, so each word of a chunk may be a pointer. The words of a
            // prefix may also be pointers.
            if self.is_chunk(block) || self.heap.prefix(block).is_some() {
                self.add_word_edges(block);
            }
        }
        self.heap.firsts.push(self.heap.edges.len());
    }

    /// Whether the stack names a block of text, or of numbers whose type cannot contain an address. Such a block
    /// contains no pointers.
    fn is_text(&self, block: usize) -> bool {
        const NUMBERS: &[&str] =
            &["str", "u8", "i8", "u16", "i16", "u32", "i32", "f32", "f64", "bool", "char"];
        let name = self.heap.stacks.verdict(self.heap.blocks[block].stack).and_then(|one| one.type_name());
        name.is_some_and(|name| {
            let name = name.strip_suffix(" boxed slice").unwrap_or(&name);
            NUMBERS.contains(&name.trim_start_matches('[').trim_end_matches(']'))
        })
    }

    /// Adds edges for the words of a block without a layout, or of a prefix, that lead to the start of a block or to
    /// the value behind its prefix.
    fn add_word_edges(&mut self, block: usize) {
        let HeapBlock { address, requested, .. } = self.heap.blocks[block];
        let requested = self.heap.prefix(block).unwrap_or(requested);
        for word in self.reader.read(address, requested).chunks_exact(8) {
            let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            let to = self.heap.index.find(&self.heap.blocks, word).filter(|to| *to != block);
            let start = |to: usize| self.heap.blocks[to].address + self.heap.prefix(to).unwrap_or(0);
            if let Some(to) = to.filter(|to| start(*to) == word || self.heap.blocks[*to].address == word) {
                self.heap.edges.push(BlockEdge { to: to as u32, path: None });
            }
        }
    }

    /// Whether strong references to the counted value of a block exist; `None` if this is unknown. Weak references
    /// count as holders of the block only if no strong reference exists.
    fn has_strong(&mut self, block: usize) -> Option<bool> {
        let info = self.heap.walk.info();
        let strong = info.member(self.heap.contents[block]?.element(), "strong")?;
        let start = self.heap.blocks[block].address.checked_add(self.heap.prefix(block).unwrap_or(0))?;
        let address = start.checked_add(strong.offset)?;
        self.reader.word(address).map(|references| references > 0)
    }

    fn edge(&mut self, pointer: &FoundPointer) -> Option<BlockEdge> {
        let (index, said) = self.find_target(pointer)?;
        // A pointer to a value of an arena does not own the chunk.
        if self.is_chunk(index) && said.is_none() {
            return None;
        }
        if pointer.weak && self.has_strong(index) != Some(false) {
            return None;
        }
        // A word that may be stale counts only if its type fits the target's type.
        let right = || {
            let (known, info) = (self.heap.contents[index], self.heap.walk.info());
            said.zip(known).is_some_and(|(said, known)| {
                let [known_of, said_of] = [known.element(), said.element()];
                // A boxed array may also be the buffer of a vector of its elements.
                is_same(info, said, known)
                    || info.starts_with(known_of, said_of)
                    || info.is_array_of(said_of, known_of)
            })
        };
        (pointer.sure || right()).then_some(BlockEdge { to: index as u32, path: Some(pointer.path) })
    }

    fn compare(&mut self, pointer: &FoundPointer) {
        if !pointer.sure {
            return;
        }
        let info = self.heap.walk.info();
        let Some((index, Some(said))) = self.find_target(pointer) else { return };
        let block = self.heap.blocks[index];
        if !pointer.certain() && self.heap.contents[index].is_none_or(|known| !is_same(info, known, said)) {
            return;
        }
        let agreement = &mut self.heap.agreement;
        if let Some(known) = self.heap.contents[index]
            && !is_same(info, known, said)
            && !is_view(info, known, said)
        {
            match self.heap.origins[index] {
                TypeOrigin::Stack => agreement.outweighed += 1,
                TypeOrigin::Owner | TypeOrigin::Nobody => agreement.owners_disagree += 1,
            }
        }
        match self.heap.stacks.contents(&block, info) {
            None => agreement.owner_only += 1,
            Some(by_stack) if is_same(info, by_stack, said) => agreement.agree += 1,
            Some(by_stack) if is_view(info, by_stack, said) => agreement.views += 1,
            Some(by_stack) => {
                let [named, owned] = [by_stack, said].map(TypedContents::element);
                let has_name = || info.name(named) == info.name(owned);
                let merged = by_stack.is_like(said)
                    && (has_name()
                        || block.stack.is_some_and(|stack| self.merged.explain(stack, named, owned, info)));
                agreement.contradict(by_stack.text(info), said.text(info), merged);
            }
        }
    }
}
