//! Values behind a prefix in the same block: a program allocates room for a prefix and a value with one layout, and
//! keeps pointers to the value only.
//!
//! Two sources name the value. Pointers lead to its offset in the block. The name of a function that allocated the
//! block contains the value's type, and only padding follows a value of this type at this offset. Without such a
//! function, the pointers alone name the type if all of them have the same offset and type, if the value ends exactly
//! where the block ends, and if none of the pointers is a reference: a reference may lead to any field.

use hashbrown::HashMap;

use dmd_analyze::{CallFrame, Dump, FunctionName, TypeVerdict, short_type_name};

use super::{Inference, TypeOrigin};
use crate::blocks::HeapBlock;
use crate::debug_info::{DebugInfo, TypeId, TypeKind};
use crate::walk::{FoundPointer, PointerTarget, TypedContents};

/// The size of the largest prefix, in bytes, if only pointers name the type of the value behind it.
const LARGEST_PREFIX: u64 = 256;

/// A block may end this many bytes after its value, since the prefix may have a larger alignment than the value.
const MOST_PADDING: u64 = 15;

/// The maximum number of functions of a stack whose names are examined.
const MOST_FUNCTIONS: usize = 4;

/// The maximum number of different pointers that are stored for a block.
const MOST_POINTERS: usize = 4;

/// The maximum number of rounds. Blocks that get types in one round may contain pointers to blocks of the next round.
const MOST_ROUNDS: usize = 64;

/// The pointers to the inside of blocks without a type.
#[derive(Debug, Default)]
pub(super) struct InnerPointers {
    by_block: HashMap<usize, InnerPointersOfBlock>,
    /// The blocks that have become candidates for chunks, or have got a reference to a value.
    new_candidates: Vec<usize>,
}

/// The pointers to the inside of one block.
#[derive(Debug, Default)]
struct InnerPointersOfBlock {
    /// The smallest offset of all pointers with a type.
    first: Option<u64>,
    different: Vec<InnerPointer>,
    /// The type of a value at the start of the block to which a pointer leads that is not a reference.
    header: Option<TypeId>,
    /// Whether a reference leads to a value behind the start.
    has_value: bool,
    /// Whether there are more different pointers than `different` stores.
    has_more: bool,
}

/// A block that may be a chunk.
#[derive(Clone, Copy)]
pub(super) struct ChunkCandidate {
    pub(super) block: usize,
    pub(super) header: TypeId,
    /// Whether a reference leads to a value behind the header.
    pub(super) has_value: bool,
}

impl InnerPointers {
    /// The blocks to whose start a pointer leads that names the type of a smaller value, if one of their pointers is
    /// new since the last call. Sorted by address.
    pub(super) fn take_candidates(&mut self) -> Vec<ChunkCandidate> {
        let mut blocks = core::mem::take(&mut self.new_candidates);
        blocks.sort_unstable();
        blocks.dedup();
        let candidate = |block: usize| {
            let pointers = self.by_block.get(&block)?;
            Some(ChunkCandidate { block, header: pointers.header?, has_value: pointers.has_value })
        };
        blocks.into_iter().filter_map(candidate).collect()
    }
}

impl InnerPointersOfBlock {
    /// Whether the type `of` is at least as large as each type that pointers to this offset name.
    fn are_within(&self, of: TypeId, at: u64, info: &DebugInfo) -> bool {
        let here = self.different.iter().filter(|pointer| pointer.at == at).filter_map(|pointer| pointer.of);
        here.into_iter().all(|other| info.size(other) <= info.size(of))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InnerPointer {
    /// The offset from the start of the block.
    at: u64,
    /// The type of the value, if the pointer leads to one value.
    of: Option<TypeId>,
    is_reference: bool,
}

/// The types in the names of the functions that allocated blocks, by stack.
#[derive(Debug)]
pub(super) struct AllocatingTypes<'d> {
    dump: &'d Dump,
    /// For each stack, the types of each function, the innermost function first.
    known: HashMap<usize, Vec<Vec<TypeId>>>,
}

impl<'d> AllocatingTypes<'d> {
    pub(super) fn new(dump: &'d Dump) -> Self {
        Self { dump, known: HashMap::new() }
    }

    fn get(&mut self, stack: usize, info: &DebugInfo) -> &[Vec<TypeId>] {
        self.known.entry(stack).or_insert_with(|| {
            let is_own = |frame: &CallFrame<'_>| frame.function.is_some() && !frame.is_of_allocator();
            let frames = self.dump.stack(stack).filter(is_own).take(MOST_FUNCTIONS);
            frames.map(|frame| types_in_name(frame.name(), info)).collect()
        })
    }
}

/// The type to which a function belongs, and the generic arguments in the function's name.
fn types_in_name(function: &str, info: &DebugInfo) -> Vec<TypeId> {
    let Some(name) = FunctionName::parse(function) else { return Vec::new() };
    let owner = name.path.split_last().map_or_else(String::new, |(_, owner)| owner.join("::"));
    let generic = format!("{owner}<{}>", name.arguments.join(", "));
    let names = [&*generic, &*owner].into_iter().chain(name.arguments);
    let types = names.flat_map(|name| info.with_short_name(&short_type_name(name)));
    let types = types.filter(|of| info.get(**of).kind == TypeKind::Struct);
    let mut types: Vec<TypeId> = types.map(|of| info.same_as(*of)).collect();
    types.sort_unstable();
    types.dedup();
    types
}

impl Inference<'_, '_, '_> {
    /// Stores a pointer to the inside of a block without a type, or of a block of bytes.
    pub(super) fn note_inner(&mut self, index: usize, pointer: &FoundPointer) {
        if self.heap.contents[index].is_some() {
            return self.note_value_in_bytes(index, pointer);
        }
        let (has_type, of) = match pointer.target {
            PointerTarget::Start { contents: TypedContents::One(of), .. } => (true, Some(of)),
            PointerTarget::Start { .. } | PointerTarget::Table { .. } => (true, None),
            PointerTarget::Opaque => (false, None),
        };
        let at = pointer.value - self.heap.blocks[index].address;
        let inner = InnerPointer { at, of, is_reference: pointer.is_reference };
        let known = self.inner.by_block.entry(index).or_default();
        let before = (known.header, known.has_value);
        if at == 0 && !inner.is_reference {
            known.header = known.header.or(of);
        }
        known.has_value |= at > 0 && has_type && inner.is_reference;
        if known.header.is_some() && before != (known.header, known.has_value) {
            self.inner.new_candidates.push(index);
        }
        if has_type {
            known.first = Some(known.first.map_or(at, |first| first.min(at)));
        }
        if !known.different.contains(&inner) {
            known.has_more |= known.different.len() >= MOST_POINTERS;
            if !known.has_more {
                known.different.push(inner);
            }
        }
    }

    /// Gives types to blocks with a value behind a prefix, and follows the pointers of these values.
    pub(super) fn find_prefixed(&mut self) {
        for _ in 0..MOST_ROUNDS {
            let noted = core::mem::take(&mut self.inner.by_block);
            let mut open: Vec<_> = noted.into_iter().collect();
            open.sort_unstable_by_key(|(block, _)| *block);
            for (index, pointers) in open {
                if self.heap.contents[index].is_some() {
                    continue;
                }
                if let Some((of, before)) = self.prefixed(index, &pointers) {
                    self.heap.contents[index] = Some(TypedContents::Prefixed { of, before });
                    self.heap.origins[index] = TypeOrigin::Owner;
                    self.queue.push_back(index as u32);
                } else {
                    // The next round tries this block again: the blocks that get types in this round may contain
                    // pointers to it.
                    self.inner.by_block.insert(index, pointers);
                }
            }
            if self.queue.is_empty() {
                break;
            }
            self.spread();
            self.settle();
        }
    }

    /// The type of the value at the end of a block, and the size of the prefix.
    fn prefixed(&mut self, index: usize, pointers: &InnerPointersOfBlock) -> Option<(TypeId, u64)> {
        let block = self.heap.blocks[index];
        let info = self.heap.walk.info();
        let verdict = self.heap.stacks.verdict(block.stack);
        if !matches!(verdict, None | Some(TypeVerdict::In { .. })) {
            return None;
        }
        let of_stack = block.stack.map(|stack| self.allocating.get(stack, info)).unwrap_or_default();
        // The value starts at one of these offsets. A pointer to a part of the value has a larger offset, so offsets
        // after the first pointer with a type are left out. A pointer without a type may also lead to the prefix.
        let starts = pointers.different.iter().map(|pointer| pointer.at).chain(pointers.first);
        let mut starts: Vec<u64> =
            starts.filter(|at| pointers.first.is_none_or(|first| *at <= first)).collect();
        starts.sort_unstable();
        starts.dedup();
        for of_function in of_stack {
            let all = starts.iter().flat_map(|at| of_function.iter().map(|of| (*of, *at)));
            let all = all.filter(|(of, at)| pointers.are_within(*of, *at, info));
            let mut fitting: Vec<_> =
                all.filter_map(|(of, at)| Some((padding(&block, info, of, at)?, (of, at)))).collect();
            fitting.sort_unstable();
            match fitting[..] {
                [(_, one)] => return Some(one),
                [(least, one), (more, _), ..] if least < more => return Some(one),
                // No type fits, or several types fit equally well, such as the types of a value and of a prefix of the
                // same size. Then the next function decides.
                _ => {}
            }
        }
        let [InnerPointer { at, of: Some(of), .. }, more @ ..] = &pointers.different[..] else { return None };
        let is_same = |pointer: &InnerPointer| {
            pointer.at == *at && pointer.of.is_some_and(|other| info.same_as(other) == info.same_as(*of))
        };
        let is_value = info.get(*of).kind == TypeKind::Struct && *at <= LARGEST_PREFIX;
        let by_owners = pointers.different.iter().all(|pointer| !pointer.is_reference);
        (is_value
            && by_owners
            && !pointers.has_more
            && more.iter().all(is_same)
            && padding(&block, info, *of, *at) == Some(0))
        .then_some((*of, *at))
    }
}

/// The number of bytes between a value at an offset and the end of its block. `None` if these bytes cannot be padding,
/// or if the value does not fit.
fn padding(block: &HeapBlock, info: &DebugInfo, of: TypeId, at: u64) -> Option<u64> {
    let end = at.checked_add(info.size(of)).filter(|_| at > 0 && info.size(of) > 0)?;
    let padding = block.requested.checked_sub(end)?;
    // A padded block has the alignment of its prefix: a power of two that is larger than the padding.
    let alignment = (padding + 1).next_power_of_two();
    (padding <= MOST_PADDING && block.requested.is_multiple_of(alignment)).then_some(padding)
}
