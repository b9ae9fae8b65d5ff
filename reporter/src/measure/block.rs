//! The parts of a walk: blocks, and edges between a value and its parts.

use core::alloc::Layout;
use core::fmt;

/// One heap block met by a walk.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct WalkedBlock {
    /// The block's first byte or, in [`WalkObserver::enclosing`](crate::measure::WalkObserver::enclosing), some byte inside it.
    pub pointer: *const u8,
    /// The size and alignment that the program requested. The size is never 0.
    pub layout: Layout,
    /// Gives the name of the type that lies in the block.
    pub type_name: fn() -> &'static str,
}

impl fmt::Debug for WalkedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapBlock")
            .field("pointer", &self.pointer)
            .field("layout", &self.layout)
            .field("type_name", &(self.type_name)())
            .finish()
    }
}

/// How a walk gets from a value to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Edge {
    /// A named field.
    Field(&'static str),
    /// A field of a variant: variant, field.
    VariantField(&'static str, &'static str),
    /// An element of a sequence or set.
    Element,
    /// A key of a map.
    Key,
    /// A value of a map.
    Value,
}
