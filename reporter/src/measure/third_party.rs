//! `MallocSizeOf` for the types of other crates, each behind the feature of its name.

#[cfg(feature = "arc-swap")]
mod arc_swap;
#[cfg(feature = "arrayvec")]
mod arrayvec;
#[cfg(feature = "bitvec")]
mod bitvec;
#[cfg(feature = "bumpalo")]
mod bumpalo;
#[cfg(feature = "bytes")]
mod bytes;
#[cfg(feature = "chrono")]
mod chrono;
#[cfg(feature = "compact_str")]
mod compact_str;
#[cfg(feature = "dashmap")]
mod dashmap;
#[cfg(feature = "either")]
mod either;
#[cfg(feature = "hashbrown")]
mod hashbrown;
#[cfg(feature = "indexmap")]
mod indexmap;
#[cfg(feature = "lru")]
mod lru;
#[cfg(feature = "num-bigint")]
mod num_bigint;
#[cfg(feature = "once_cell")]
mod once_cell;
#[cfg(feature = "ordered-float")]
mod ordered_float;
#[cfg(feature = "parking_lot")]
mod parking_lot;
#[cfg(feature = "petgraph")]
mod petgraph;
#[cfg(feature = "roaring")]
mod roaring;
#[cfg(feature = "serde_json")]
mod serde_json;
#[cfg(feature = "slab")]
mod slab;
#[cfg(feature = "slotmap")]
mod slotmap;
#[cfg(feature = "smallvec")]
mod smallvec;
#[cfg(feature = "smol_str")]
mod smol_str;
#[cfg(feature = "thin-vec")]
mod thin_vec;
#[cfg(feature = "time")]
mod time;
#[cfg(feature = "tinyvec")]
mod tinyvec;
#[cfg(feature = "tokio")]
mod tokio;
#[cfg(feature = "triomphe")]
mod triomphe;
#[cfg(feature = "url")]
mod url;
#[cfg(feature = "uuid")]
mod uuid;
