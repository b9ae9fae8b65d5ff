//! The number that identifies a group of a census for a front end.

use core::hash::{Hash as _, Hasher as _};
use std::hash::DefaultHasher;

use heap_graph::census::CensusTreeName;

/// JavaScript's numbers represent every whole number below this exactly.
pub(super) const EXACT: u64 = 1 << 53;

/// Returns the id of a group from its name and the id of its parent.
pub(super) fn group_id(name: Option<&CensusTreeName>, parent: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (parent, name).hash(&mut hasher);
    hasher.finish() % EXACT
}
