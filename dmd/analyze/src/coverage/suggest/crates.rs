//! The crates whose types memory-reporter measures, with features or with the code of its documentation.

/// The features of memory-reporter that measure the types of a crate, each with the crate's name and major version.
const FEATURES: &[&str] = &[
    "arc-swap1",
    "arrayvec07",
    "bitvec1",
    "bumpalo3",
    "bytes1",
    "chrono04",
    "compact_str010",
    "dashmap6",
    "either1",
    "hashbrown017",
    "indexmap2",
    "lru018",
    "num-bigint05",
    "once_cell1",
    "ordered-float5",
    "parking_lot012",
    "petgraph08",
    "roaring011",
    "serde_json1",
    "slab04",
    "slotmap1",
    "smallvec1",
    "smol_str03",
    "thin-vec02",
    "time03",
    "tinyvec1",
    "tokio1",
    "triomphe01",
    "url2",
    "uuid1",
];

/// Crates for which `memory_reporter::docs::other_crates` has code. The list leaves out crates if the code covers only
/// some of their types.
pub(super) const OTHER_CRATES: &[&str] = &[
    "async_channel",
    "bit_vec",
    "bstr",
    "camino",
    "crossbeam_channel",
    "crossbeam_queue",
    "csv",
    "fixedbitset",
    "flume",
    "generational_arena",
    "hashlink",
    "id_arena",
    "lasso",
    "moka",
    "ndarray",
    "quick_cache",
    "ropey",
    "semver",
    "toml",
    "typed_arena",
];

/// The feature of memory-reporter that measures the types of a crate.
pub(super) fn feature_for(name: &str) -> Option<&'static str> {
    let crate_name = |feature: &str| feature.trim_end_matches(|c: char| c.is_ascii_digit()).replace('-', "_");
    FEATURES.iter().find(|feature| crate_name(feature) == name).copied()
}
