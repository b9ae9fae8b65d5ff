//! The layouts of blocks to which std's containers give no access. This module copies the types of std's nodes. The
//! tests compare its layouts with a counting allocator on every toolchain.

pub(crate) mod btree;
pub(crate) mod hash_table;
#[cfg(any(feature = "indexmap2", feature = "petgraph08", feature = "serde_json1"))]
pub(crate) mod index_map;
pub(crate) mod list;
pub(crate) mod shared;
