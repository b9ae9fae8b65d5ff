//! The parts of a walk: blocks, and edges between a value and its parts.

use core::alloc::Layout;
use core::fmt;

/// One heap block that a walk has found.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct WalkedBlock {
    /// The block's first byte. In [`WalkObserver::enclosing`](crate::measure::WalkObserver::enclosing), any byte of
    /// the block.
    pub pointer: *const u8,
    /// The size and alignment that the program requested. The size is never 0.
    pub layout: Layout,
    /// Returns the name of the type of the block's contents.
    pub type_name: fn() -> &'static str,
}

impl fmt::Debug for WalkedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WalkedBlock")
            .field("pointer", &self.pointer)
            .field("layout", &self.layout)
            .field("type_name", &(self.type_name)())
            .finish()
    }
}

/// The relation between a value and one of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Edge {
    /// A named field.
    Field(&'static str),
    /// A field of an enum's variant: the names of the variant and of the field.
    VariantField(&'static str, &'static str),
    /// An element of a sequence or set.
    Element,
    /// A key of a map.
    Key,
    /// A value of a map.
    Value,
}
