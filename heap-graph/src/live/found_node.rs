//! A node that a walk has met, and its id.

use crate::graph::GraphFrameId;

/// The id of the graph's root. The roots of the program have the next ids, in order. The ids of blocks are higher:
/// they are addresses, or at least 2^52.
pub(super) const ROOT_ID: u64 = 1;

/// The id of the program's root number `place`, from 0.
pub(super) fn root_id(place: u64) -> u64 {
    ROOT_ID + 1 + place
}

/// A node that the walk has met.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundNode {
    pub(super) id: u64,
    pub(super) size: u64,
    pub(super) kind: KindId,
    pub(super) stack: Option<GraphFrameId>,
}

impl FoundNode {
    /// The graph's root, which leads to the program's roots.
    pub(super) const ROOT: Self = Self { id: ROOT_ID, size: 0, kind: KindId(0), stack: None };
}

/// The number of a kind: types that several nodes share. 0 is the root's kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindId(pub(super) u32);
