//! The live blocks of a scan dump, and what their allocation stacks say of their types.

use dmd_analyze::{Dump, Shape, TypeNames, Verdict};

use crate::debug_info::DebugInfo;
use crate::error::TypedError;
use crate::walk::Contents;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address of its start.
    pub address: u64,
    /// Requested bytes.
    pub requested: u64,
    /// Requested bytes and slop.
    pub usable: u64,
    /// The index in [`Dump::stacks`] of the stack that allocated it.
    pub stack: Option<usize>,
}

/// The blocks of a dump, sorted by address.
pub(crate) fn of(dump: &Dump) -> Result<Vec<Block>, TypedError> {
    let mut blocks: Vec<Block> = dump
        .scanned_blocks()?
        .map(|block| Block {
            address: block.address(),
            requested: block.requested(),
            usable: block.usable(),
            stack: block.stack(),
        })
        .collect();
    blocks.sort_by_key(|block| block.address);
    let apart = |pair: &[Block]| {
        let end = pair[0].address.checked_add(pair[0].usable.max(1));
        end.is_some_and(|end| end <= pair[1].address)
    };
    match blocks.windows(2).find(|pair| !apart(pair)) {
        Some(pair) => Err(TypedError::Overlap(pair[1].address)),
        None => Ok(blocks),
    }
}

/// The block that contains an address.
pub(crate) fn find(blocks: &[Block], address: u64) -> Option<usize> {
    let index = blocks.partition_point(|block| block.address <= address).checked_sub(1)?;
    (address - blocks[index].address < blocks[index].requested.max(1)).then_some(index)
}

/// Whether a block of this size can hold the contents.
pub(crate) fn fits(info: &DebugInfo, contents: Contents, bytes: u64) -> bool {
    match contents {
        Contents::One(of) => info.size(of) == bytes,
        Contents::Tail { of, .. } => info.size(of) <= bytes,
        Contents::Slice { element, len, .. } => {
            let size = info.size(element);
            size > 0 && bytes.is_multiple_of(size) && len.is_none_or(|len| len <= bytes / size)
        }
        Contents::Table { entry } => info.buckets(bytes, entry).is_some(),
    }
}

/// What the stacks of a dump say.
#[derive(Debug)]
pub(crate) struct StackTypes {
    types: TypeNames,
    /// For each verdict, by its number: what a block may hold.
    candidates: Vec<Vec<Contents>>,
}

impl StackTypes {
    pub(crate) fn new(dump: &Dump, info: &DebugInfo, has_tail: impl Fn(Contents) -> bool) -> Self {
        let types = dump.types();
        let mut candidates = Vec::new();
        for stack in 0..dump.stacks().len() {
            let (Some(number), Some(verdict)) = (types.number(stack), types.get(stack)) else { continue };
            if candidates.len() <= number {
                candidates.resize_with(number + 1, || None);
            }
            if candidates[number].is_none() {
                candidates[number] = Some(contents(verdict, info, &has_tail));
            }
        }
        Self { types, candidates: candidates.into_iter().map(Option::unwrap_or_default).collect() }
    }

    /// The verdict about a stack.
    pub(crate) fn verdict(&self, stack: Option<usize>) -> Option<&Verdict> {
        self.types.get(stack?)
    }

    /// The contents of a block, if its stack names a type that has a layout and fits the block. Several types of one
    /// name that all fit give none.
    pub(crate) fn of(&self, block: &Block, info: &DebugInfo) -> Option<Contents> {
        let all = self.candidates.get(self.types.number(block.stack?)?)?;
        let mut fitting = all.iter().filter(|contents| fits(info, **contents, block.requested));
        let first = *fitting.next()?;
        fitting.next().is_none().then_some(first)
    }

    /// Whether the stack names a type with a layout, but no such type fits the block.
    pub(crate) fn misfits(&self, block: &Block, info: &DebugInfo) -> bool {
        let number = block.stack.and_then(|stack| self.types.number(stack));
        let all = number.and_then(|number| self.candidates.get(number)).map_or(&[][..], Vec::as_slice);
        !all.is_empty() && !all.iter().any(|contents| fits(info, *contents, block.requested))
    }
}

/// What a verdict means in terms of the program's types.
fn contents(verdict: &Verdict, info: &DebugInfo, has_tail: impl Fn(Contents) -> bool) -> Vec<Contents> {
    let Verdict::Typed { shape, name, .. } = verdict else { return Vec::new() };
    let element = match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(element) => element,
        None if name == "str" => "u8",
        None => name,
    };
    match shape {
        Shape::One => {
            let of = info.with_short_name(name).iter().map(|of| Contents::One(*of));
            of.map(|one| match one {
                Contents::One(of) if has_tail(one) => Contents::Tail { of, len: None },
                _ => one,
            })
            .collect()
        }
        Shape::Slice | Shape::BoxedSlice => {
            let of = info.with_short_name(element).iter();
            of.map(|of| Contents::Slice { element: *of, first: 0, len: None }).collect()
        }
        Shape::Table => info.with_short_name(name).iter().map(|of| Contents::Table { entry: *of }).collect(),
        _ => Vec::new(),
    }
}
