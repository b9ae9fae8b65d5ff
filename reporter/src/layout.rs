//! How std lays out the blocks that its collections do not show: mirrors of its nodes, checked
//! against a counting allocator in the tests on every toolchain.

pub(crate) mod btree;
pub(crate) mod hash_table;
#[cfg(any(feature = "indexmap", feature = "petgraph", feature = "serde_json"))]
pub(crate) mod index_map;
pub(crate) mod list;
pub(crate) mod shared;
