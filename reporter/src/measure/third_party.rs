//! `MallocSizeOf` for the types of other crates. Each crate has its own feature.

#[cfg(feature = "arc-swap1")]
mod arc_swap;
#[cfg(feature = "arrayvec07")]
mod arrayvec;
#[cfg(feature = "bitvec1")]
mod bitvec;
#[cfg(feature = "bumpalo3")]
mod bumpalo;
#[cfg(feature = "bytes1")]
mod bytes;
#[cfg(feature = "chrono04")]
mod chrono;
#[cfg(feature = "compact_str010")]
mod compact_str;
#[cfg(feature = "dashmap6")]
mod dashmap;
#[cfg(feature = "either1")]
mod either;
#[cfg(feature = "hashbrown017")]
mod hashbrown;
#[cfg(feature = "indexmap2")]
mod indexmap;
#[cfg(feature = "lru018")]
mod lru;
#[cfg(feature = "num-bigint05")]
mod num_bigint;
#[cfg(feature = "once_cell1")]
mod once_cell;
#[cfg(feature = "ordered-float5")]
mod ordered_float;
#[cfg(feature = "parking_lot012")]
mod parking_lot;
#[cfg(feature = "petgraph08")]
mod petgraph;
#[cfg(feature = "roaring011")]
mod roaring;
#[cfg(feature = "serde_json1")]
mod serde_json;
#[cfg(feature = "slab04")]
mod slab;
#[cfg(feature = "slotmap1")]
mod slotmap;
#[cfg(feature = "smallvec1")]
mod smallvec;
#[cfg(feature = "smol_str03")]
mod smol_str;
#[cfg(any(feature = "hashbrown017", feature = "indexmap2"))]
mod table;
#[cfg(feature = "thin-vec02")]
mod thin_vec;
#[cfg(feature = "time03")]
mod time;
#[cfg(feature = "tinyvec1")]
mod tinyvec;
#[cfg(feature = "tokio1")]
mod tokio;
#[cfg(feature = "triomphe01")]
mod triomphe;
#[cfg(feature = "url2")]
mod url;
#[cfg(feature = "uuid1")]
mod uuid;
