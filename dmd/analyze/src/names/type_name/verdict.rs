//! Computes the type of a block from its stack.

use core::fmt;

use super::BlockShape;
use super::generics::FunctionName;
use super::role::{FrameFacts, FrameRole, FrameType};
use super::spelling::shorten;
use crate::dump::CallFrame;
use crate::names::arena_of;

/// The type of a block, if its allocation stack contains the type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TypeVerdict {
    /// The block has a type.
    Typed {
        /// The way in which the block consists of values.
        shape: BlockShape,
        /// The type; for a table, the type of an entry.
        name: String,
        /// Whether the block may have another type of the same layout.
        certainty: TypeCertainty,
    },
    /// The block is a chunk. An arena hands out parts of the chunk.
    Chunk {
        /// The crate of the arena.
        arena: String,
    },
    /// The type is unknown.
    In {
        /// The path of the innermost function outside of allocators and collections. If all known functions are inside
        /// of them, the innermost known function. `None` if no function of the stack is known.
        function: Option<String>,
    },
}

/// The certainty of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TypeCertainty {
    /// The stack names the type.
    Certain,
    /// The type is this type or another type of the same layout: each function that names the type is generic over it.
    /// The compiler may have merged a function's instances for several types, and kept the name of one instance.
    SameLayout,
}

/// Writes `[syn::Stmt]`, `table (u32, app::Job)`, `[u8] boxed slice`, `chunk of bumpalo`, or `in app::load`.
impl fmt::Display for TypeVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typed { shape, name, certainty } => {
                match shape {
                    BlockShape::One | BlockShape::Slice => f.write_str(name)?,
                    BlockShape::BoxedSlice => write!(f, "{name} boxed slice")?,
                    BlockShape::Table => write!(f, "table {name}")?,
                }
                match certainty {
                    TypeCertainty::Certain => Ok(()),
                    TypeCertainty::SameLayout => f.write_str(", or a type of the same layout"),
                }
            }
            Self::Chunk { arena } => write!(f, "chunk of {arena}"),
            Self::In { function: Some(function) } => write!(f, "in {function}"),
            Self::In { function: None } => f.write_str("in an unknown function"),
        }
    }
}

impl TypeVerdict {
    /// The type without its certainty; `None` if the type is unknown.
    pub fn type_name(&self) -> Option<String> {
        let Self::Typed { shape, name, .. } = self else { return None };
        Some(Self::Typed { shape: *shape, name: name.clone(), certainty: TypeCertainty::Certain }.to_string())
    }

    /// The verdict about the blocks of a stack. The frames are innermost first.
    pub fn from_stack(stack: &[CallFrame<'_>]) -> Self {
        let facts: Vec<FrameFacts> = stack.iter().map(FrameFacts::new).collect();
        let facts: Vec<&FrameFacts> = facts.iter().collect();
        match VerdictBasis::find(&facts, |index| stack[index]) {
            VerdictBasis::Typed(typed, certainty, _) => Self::typed(typed, certainty),
            VerdictBasis::In(index) => Self::within(index.map(|index| &stack[index])),
        }
    }

    pub(super) fn typed(typed: &FrameType, certainty: TypeCertainty) -> Self {
        Self::Typed { shape: typed.shape, name: typed.name.clone(), certainty }
    }

    pub(super) fn within(frame: Option<&CallFrame<'_>>) -> Self {
        match frame.and_then(arena_of) {
            Some(arena) => Self::Chunk { arena: arena.into_owned() },
            None => Self::In { function: frame.map(|frame| path(frame.name())) },
        }
    }
}

/// The frame from which a verdict follows.
#[derive(Clone, Copy, Debug)]
pub(super) enum VerdictBasis<'f> {
    /// A type, and the index of the frame that names it.
    Typed(&'f FrameType, TypeCertainty, usize),
    /// No frame names a type. The value is the index of the frame that allocated.
    In(Option<usize>),
}

impl<'f> VerdictBasis<'f> {
    /// Finds the basis of the verdict about a stack. `frame` returns the frame at an index of `facts`.
    pub(super) fn find<'t>(facts: &[&'f FrameFacts], frame: impl Fn(usize) -> CallFrame<'t>) -> Self {
        let entry = facts.iter().rposition(|facts| matches!(facts.role, FrameRole::Entry));
        let start = entry.map_or(0, |entry| entry + 1);
        if let Some((typed, certainty, index)) = typed(facts, start) {
            return Self::Typed(typed, certainty, index);
        }
        let mut known = (start..facts.len()).filter(|index| frame(*index).function.is_some());
        let first = known.next();
        let own = first.into_iter().chain(known).find(|index| !frame(*index).is_of_allocator());
        Self::In(own.or(first))
    }
}

/// The type of a block, from the frames between `start` and the first frame whose role is [`FrameRole::Other`]: all
/// these frames allocate this block. If the linker has merged instances of a function, the function's name may contain
/// the type of another instance. Then the caller's name contains the right type.
fn typed<'f>(facts: &[&'f FrameFacts], start: usize) -> Option<(&'f FrameType, TypeCertainty, usize)> {
    let mut best: Option<(&'f FrameType, TypeCertainty, usize)> = None;
    for (index, facts_of) in facts.iter().enumerate().skip(start) {
        let typed = match &facts_of.role {
            FrameRole::Passes | FrameRole::Entry => continue,
            FrameRole::Other => break,
            FrameRole::Typed(typed) => typed,
        };
        let here = certainty(facts, index, typed);
        best = match best {
            None => Some((typed, here, index)),
            Some((known, TypeCertainty::Certain, at)) if known == typed || narrows(known, typed) => {
                Some((typed, TypeCertainty::Certain, if known == typed { at } else { index }))
            }
            // The outer function decides: it names the same type, or the inner function has the name of another
            // instance.
            Some((known, TypeCertainty::SameLayout, at))
                if known.shape == typed.shape || narrows(known, typed) =>
            {
                Some((typed, here, if known == typed { at } else { index }))
            }
            Some(_) => break,
        };
    }
    best
}

/// Whether an outer function names the same memory at least as exactly: as a string instead of bytes, or as a boxed
/// slice instead of a buffer.
fn narrows(known: &FrameType, outer: &FrameType) -> bool {
    let text = |typed: &FrameType| typed.name.replace("[u8]", "str");
    let is_slice = |shape| matches!(shape, BlockShape::Slice | BlockShape::BoxedSlice);
    match (known.shape, outer.shape) {
        (BlockShape::BoxedSlice, BlockShape::Slice) => false,
        (known_shape, outer_shape) if is_slice(known_shape) && is_slice(outer_shape) => {
            known.name == outer.name || text(known) == outer.name
        }
        (BlockShape::One, BlockShape::One) => text(known) == outer.name,
        _ => false,
    }
}

/// Whether a frame's type is certain. The type is not certain if the function into which the frame was inlined is an
/// instance for the type: the linker may have merged this function with another instance.
fn certainty(facts: &[&FrameFacts], at: usize, typed: &FrameType) -> TypeCertainty {
    let whole = facts[at..].iter().find(|facts| !facts.inlined);
    match whole.is_some_and(|facts| facts.is_instance_for(typed)) {
        true => TypeCertainty::SameLayout,
        false => TypeCertainty::Certain,
    }
}

/// The path of a function without its types.
fn path(name: &str) -> String {
    match FunctionName::parse(name) {
        Some(FunctionName { path, .. }) if path.len() > 1 => path.join("::"),
        _ => shorten(name),
    }
}
