//! The id of a stack.

/// A stack, as a node of the tree of calls. [`TraceId::NONE`] is the empty stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TraceId(pub(crate) u32);

impl TraceId {
    pub(crate) const NONE: Self = Self(0);
    /// The number of bits of an id. The word of a block has no room for more.
    pub(crate) const BITS: u32 = 25;
    /// The largest id.
    pub(crate) const MAX: u32 = (1 << Self::BITS) - 1;
}
