//! Compares the sizes of other crates' types with a counting allocator. Also compares the documentation's table of
//! these crates with the features of the library.

use std::fmt::Write as _;
use std::hash::RandomState;
use std::path::Path;
use std::sync::Arc;

use memory_reporter::{
    Collection, Kind, MallocSizeOf, MallocSizeOfOps, MemoryReporter, Reports, Units, computed_size_of,
    malloc_size_of,
    measure::{MallocSizeOfEach, SkipReason},
};
use tests::{Random, golden, grown};

/// Asserts that both readings are exact for the value, and that neither skips a part of it.
fn exact<T: MallocSizeOf>(name: &str, make: impl FnOnce() -> T) {
    let (value, held) = grown(make);
    let mut ops = MallocSizeOfOps::computed();
    assert_eq!(value.size_of_excluding_this(&mut ops) as isize, held.asked, "computed: {name}");
    assert_eq!(malloc_size_of(&value) as isize, held.usable, "measured: {name}");
    assert_eq!(ops.skipped(), [], "{name}");
}

/// Takes a value that shows only the inside of some blocks. Asserts that its computed size is exact, and that its
/// measured size is between the requested and the usable bytes.
fn exact_computed<T: MallocSizeOf>(name: &str, make: impl FnOnce() -> T) {
    let (value, held) = grown(make);
    let mut ops = MallocSizeOfOps::computed();
    assert_eq!(value.size_of_excluding_this(&mut ops) as isize, held.asked, "computed: {name}");
    let measured = malloc_size_of(&value) as isize;
    assert!((held.asked..=held.usable).contains(&measured), "measured: {name}: {measured} {held:?}");
    assert_eq!(ops.skipped(), [], "{name}");
}

/// Asserts that the computed size is at least `percent` of the requested bytes, and at most all of them.
fn at_least<T: MallocSizeOf>(name: &str, percent: isize, make: impl FnOnce() -> T) {
    let (value, held) = grown(make);
    let computed = computed_size_of(&value) as isize;
    assert!(computed <= held.asked, "{name}: {computed} of {held:?}");
    assert!(computed * 100 >= held.asked * percent, "{name}: {computed} of {held:?}");
}

/// Asserts that the library lists the value as skipped for this reason, and counts it as 0.
fn skipped<T: MallocSizeOf>(value: &T, reason: SkipReason) {
    let mut ops = MallocSizeOfOps::computed();
    assert_eq!(value.size_of_excluding_this(&mut ops), 0);
    let reasons: Vec<_> = ops.skipped().iter().map(|part| part.reason).collect();
    assert_eq!(reasons, [reason]);
}

fn text(n: usize) -> String {
    "x".repeat(n)
}

#[test]
fn arc_swap() {
    exact_computed("ArcSwap", || arc_swap::ArcSwap::from_pointee(text(50)));
    exact_computed("empty ArcSwapOption", arc_swap::ArcSwapOption::<String>::empty);
    let of_a_static = || Arc::<[u64; 0]>::try_from(Arc::<[u64]>::default()).unwrap();
    exact("ArcSwap of std's static", || arc_swap::ArcSwap::new(of_a_static()));
    let shared = Arc::new(text(50));
    let (swap, held) = (arc_swap::ArcSwap::new(Arc::clone(&shared)), computed_size_of(&shared));
    let mut ops = MallocSizeOfOps::computed();
    assert_eq!(swap.size_of_excluding_this(&mut ops), held);
    assert_eq!(swap.load().size_of_excluding_this(&mut ops), 0, "counted once");
}

#[test]
fn arrayvec() {
    exact("ArrayVec", || (0..3).map(text).collect::<arrayvec::ArrayVec<_, 7>>());
    exact("ArrayString", arrayvec::ArrayString::<9>::new);
}

#[test]
fn bitvec() {
    use ::bitvec::prelude::{BitArray, BitVec, Lsb0, bits};
    exact("BitVec", || (0..1000).map(|i| i % 3 == 0).collect::<BitVec<u8>>());
    exact("BitVec with room", || BitVec::<usize>::with_capacity(1001));
    exact("empty BitVec", BitVec::<usize>::new);
    exact("BitVec from the middle of a word", || bits![u16, Lsb0; 1; 99][5..].to_bitvec());
    exact("BitBox", || (0..1000).map(|i| i % 3 == 0).collect::<BitVec<u32>>().into_boxed_bitslice());
    exact("BitArray", || BitArray::<[u8; 4]>::ZERO);
}

#[test]
fn bumpalo() {
    use ::bumpalo::Bump;
    exact("empty Bump", Bump::new);
    exact_computed("Bump of one chunk", || {
        let bump = Bump::new();
        bump.alloc(7_u64);
        bump
    });
    exact_computed("Bump of many chunks", || {
        let bump = Bump::new();
        (0..1000_usize).for_each(|i| {
            bump.alloc_slice_fill_copy(i, 1_u8);
        });
        bump
    });
}

#[test]
fn bytes() {
    use ::bytes::{Bytes, BytesMut};
    at_least("Bytes of a full vector", 100, || Bytes::from(vec![1; 100]));
    at_least("Bytes of a vector with room", 40, || {
        let mut vec = Vec::with_capacity(200);
        vec.extend([1; 100]);
        Bytes::from(vec)
    });
    at_least("part of a Bytes", 20, || Bytes::from(vec![1; 100]).split_off(70));
    exact("empty Bytes", Bytes::new);
    // A `Bytes` does not show whether it is static or has several owners.
    skipped(&Bytes::from_static(b"static"), SkipReason::Opaque);
    exact_computed("BytesMut with room", || BytesMut::with_capacity(777));
    let (halves, held) = grown(|| {
        let mut front = BytesMut::zeroed(1000);
        let back = front.split_off(300);
        (front, back)
    });
    let computed = computed_size_of(&halves) as isize;
    // The two halves share a buffer, and a header that counts the owners.
    assert!(computed <= held.asked && computed == 1000, "{computed} of {held:?}");
}

#[test]
fn chrono() {
    use ::chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta, Utc};
    exact("DateTime", || vec![DateTime::<Utc>::UNIX_EPOCH; 9]);
    exact("NaiveDateTime", || vec![(NaiveDateTime::MIN, NaiveDate::MIN, TimeDelta::MAX); 9]);
}

#[test]
fn compact_str() {
    use ::compact_str::CompactString;
    exact("short", || CompactString::new("short"));
    exact_computed("long", || CompactString::new(text(100)));
    exact_computed("with room", || CompactString::with_capacity(777));
    exact("static", || CompactString::const_new("static text that is too long for the place"));
}

#[test]
fn dashmap() {
    use ::dashmap::{DashMap, DashSet};
    exact("DashMap", || {
        let map = DashMap::new();
        (0..1000).for_each(|i| drop(map.insert(i, text(i))));
        map
    });
    exact("DashMap of plain data", || (0..1000_u64).map(|i| (i, [0_u8; 3])).collect::<DashMap<_, _>>());
    exact("empty DashMap", DashMap::<u8, u8>::new);
    let map = DashMap::with_shard_amount(2);
    map.insert(1_u8, text(9));
    let whole = computed_size_of(&map);
    let _writer = map.get_mut(&1);
    let mut ops = MallocSizeOfOps::computed();
    assert!(map.size_of_excluding_this(&mut ops) < whole);
    assert_eq!(ops.skipped()[0].reason, SkipReason::Locked);
    skipped(&DashSet::<u8>::new(), SkipReason::Opaque);
}

#[test]
fn either() {
    exact("Left", || ::either::Either::<String, u8>::Left(text(9)));
}

#[test]
fn hashbrown() {
    type Map<K, V> = ::hashbrown::HashMap<K, V, RandomState>;
    exact_computed("HashMap", || (0..1000).map(|i| (i, text(i))).collect::<Map<_, _>>());
    exact_computed("HashMap after removals", || {
        let mut map = (0..7000_u64).map(|i| (i, i)).collect::<Map<_, _>>();
        map.retain(|i, _| *i < 9);
        map
    });
    exact("empty HashMap", Map::<u8, u8>::default);
    exact_computed("HashSet", || (0..1000).map(text).collect::<::hashbrown::HashSet<_, RandomState>>());
    exact_computed("HashTable", || {
        let mut table = ::hashbrown::HashTable::new();
        (0..1000_u64).for_each(|i| {
            table.insert_unique(i, i, |i| *i);
        });
        table
    });
    let (map, held) = grown(|| (0..100_u64).map(|i| (i, std::rc::Rc::new(i))).collect::<Map<_, _>>());
    let shallow = map.shallow_size_of_excluding_this(&mut MallocSizeOfOps::computed());
    assert_eq!(shallow as isize + 100 * 24, held.asked);
}

#[test]
fn indexmap() {
    use ::indexmap::{IndexMap, IndexSet};
    let mut random = Random::new(17);
    for _ in 0..300 {
        let n = random.below(3000);
        exact_computed("IndexMap grown", || {
            let mut map = IndexMap::new();
            (0..n).for_each(|i| {
                map.insert(i, 1_u8);
            });
            map
        });
        exact_computed("IndexMap made for a size", || IndexMap::<u64, u8>::with_capacity(n as usize));
    }
    exact_computed("IndexMap", || (0..1000).map(|i| (i, text(i))).collect::<IndexMap<_, _>>());
    exact_computed("IndexSet", || (0..1000).map(text).collect::<IndexSet<_>>());
    at_least("IndexMap after removals", 40, || {
        let mut map: IndexMap<u64, u64> = (0..7000).map(|i| (i, i)).collect();
        map.retain(|i, _| *i < 9);
        map
    });
    let (map, held) = grown(|| (0..100_u64).map(|i| (i, Box::new(i))).collect::<IndexMap<_, _>>());
    let shallow = map.shallow_size_of_excluding_this(&mut MallocSizeOfOps::computed());
    assert_eq!(shallow as isize + 100 * 8, held.asked);
}

#[test]
fn lru() {
    use std::num::NonZeroUsize;

    use ::lru::LruCache;
    at_least("full LruCache", 95, || {
        let mut cache = LruCache::new(NonZeroUsize::new(100).unwrap());
        (0..100).for_each(|i| drop(cache.put(i, text(i))));
        cache
    });
    for entries in [0, 1, 5, 9, 300] {
        at_least("LruCache without a bound", 50, || {
            let mut cache = LruCache::unbounded();
            (0..entries).for_each(|i| {
                cache.put(i as u16, i);
            });
            cache
        });
    }
    at_least("LruCache with room", 1, || {
        let mut cache = LruCache::new(NonZeroUsize::new(1000).unwrap());
        (0..10).for_each(|i| drop(cache.put(text(i), Box::new(i))));
        cache
    });
}

#[test]
fn num_bigint() {
    use ::num_bigint::{BigInt, BigUint};
    exact("BigUint in place", || BigUint::from(7_u8));
    at_least("BigUint", 50, || BigUint::from(7_u8).pow(1000));
    at_least("BigInt", 50, || -BigInt::from(BigUint::from(7_u8).pow(1000)));
}

#[test]
fn once_cell() {
    exact("sync::OnceCell", || ::once_cell::sync::OnceCell::with_value(text(9)));
    exact("unsync::OnceCell", || ::once_cell::unsync::OnceCell::with_value(text(9)));
    let lazy = ::once_cell::sync::Lazy::<String>::new(|| text(9));
    assert_eq!(computed_size_of(&lazy), 0, "measuring must not initialize the value");
    assert_eq!((lazy.len(), computed_size_of(&lazy)), (9, 9));
    let captured = text(9);
    skipped(&::once_cell::unsync::Lazy::new(move || captured.clone()), SkipReason::Opaque);
}

#[test]
fn ordered_float() {
    exact("OrderedFloat", || vec![::ordered_float::OrderedFloat(1.0_f64); 9]);
    exact("NotNan", || vec![::ordered_float::NotNan::new(1.0_f32).unwrap(); 9]);
}

#[test]
fn parking_lot() {
    use ::parking_lot::{FairMutex, Mutex, ReentrantMutex, RwLock};
    exact("Mutex", || Mutex::new(text(9)));
    exact("FairMutex", || FairMutex::new(text(9)));
    exact("ReentrantMutex", || ReentrantMutex::new(text(9)));
    exact("RwLock", || RwLock::new(text(9)));
    let (mutex, lock) = (Mutex::new(text(9)), RwLock::new(text(9)));
    let (_held, _read) = (mutex.lock(), lock.read());
    skipped(&mutex, SkipReason::Locked);
    assert_eq!(computed_size_of(&lock), 9);
}

#[test]
fn petgraph() {
    use ::petgraph::graph::DiGraph;
    use ::petgraph::graphmap::UnGraphMap;
    use ::petgraph::stable_graph::StableUnGraph;
    exact("Graph", || {
        let mut graph = DiGraph::<String, u8>::new();
        let nodes: Vec<_> = (0..100).map(|i| graph.add_node(text(i))).collect();
        (0..99).for_each(|i| {
            graph.add_edge(nodes[i], nodes[i + 1], 1);
        });
        graph
    });
    exact_computed("StableGraph", || {
        let mut graph = StableUnGraph::<String, Box<u8>>::default();
        let nodes: Vec<_> = (0..100).map(|i| graph.add_node(text(i))).collect();
        (0..99).for_each(|i| {
            graph.add_edge(nodes[i], nodes[i + 1], Box::new(1));
        });
        graph.remove_node(nodes[50]);
        graph
    });
    let (graph, held) = grown(|| UnGraphMap::<u32, u8>::from_edges((0..100).map(|i| (i, i + 1, 1))));
    // Each list of neighbors starts with room for one neighbor, and grows to four.
    let lists = (2 + 99 * 4) * size_of::<(u32, bool)>();
    assert_eq!(
        (computed_size_of(&graph) + lists) as isize,
        held.asked,
        "exact except for the lists of neighbors"
    );
    skipped(&::petgraph::csr::Csr::<(), ()>::new(), SkipReason::Opaque);
}

#[test]
fn roaring() {
    use ::roaring::{RoaringBitmap, RoaringTreemap};
    at_least("RoaringBitmap", 60, || (0..1_000_000).step_by(3).collect::<RoaringBitmap>());
    at_least("sparse RoaringBitmap", 50, || (0..1_000_000).step_by(1003).collect::<RoaringBitmap>());
    at_least("RoaringBitmap of runs", 40, || {
        let mut bitmap = (0..10_000_000).filter(|i| i % 100 < 50).collect::<RoaringBitmap>();
        bitmap.optimize();
        bitmap
    });
    at_least("RoaringTreemap", 50, || (0..1_000_000_u64).step_by(1003).collect::<RoaringTreemap>());
}

#[test]
fn serde_json() {
    let source = r#"{"name": "x", "list": [1, 2.5, null, true, "text"], "object": {"a": {}, "b": [[]]}}"#;
    exact_computed("Value", || ::serde_json::from_str::<::serde_json::Value>(source).unwrap());
    let large =
        format!("{{{}}}", (0..500).map(|i| format!("\"{i}\": {source}")).collect::<Vec<_>>().join(","));
    exact_computed("large Value", || ::serde_json::from_str::<::serde_json::Value>(&large).unwrap());
}

#[test]
fn slab() {
    exact_computed("Slab", || {
        let mut slab = ::slab::Slab::new();
        (0..100).for_each(|i| {
            slab.insert(text(i));
        });
        (0..50).for_each(|i| drop(slab.remove(i)));
        slab
    });
    exact_computed("Slab of u8", || {
        let mut slab = ::slab::Slab::with_capacity(77);
        slab.insert(1_u8);
        slab
    });
}

#[test]
fn slotmap() {
    use ::slotmap::{DenseSlotMap, SecondaryMap, SlotMap, SparseSecondaryMap};
    let mut keys = SlotMap::<_, u8>::new();
    let keys: Vec<_> = (0..100).map(|i| keys.insert(i)).collect();
    exact_computed("SlotMap", || {
        let mut map = SlotMap::new();
        (0..100).for_each(|i| {
            map.insert(text(i));
        });
        map
    });
    exact_computed("SecondaryMap", || keys.iter().map(|key| (*key, text(5))).collect::<SecondaryMap<_, _>>());
    exact_computed("SparseSecondaryMap", || {
        keys.iter().map(|key| (*key, text(5))).collect::<SparseSecondaryMap<_, _>>()
    });
    at_least("DenseSlotMap", 70, || {
        let mut map = DenseSlotMap::new();
        (0..100).for_each(|i| {
            map.insert(text(i % 5));
        });
        map
    });
}

#[test]
fn smallvec() {
    use ::smallvec::SmallVec;
    exact("in place", || (0..3).map(text).collect::<SmallVec<[_; 4]>>());
    exact("spilled", || (0..30).map(text).collect::<SmallVec<[_; 4]>>());
    exact("spilled, with room", || SmallVec::<[u64; 4]>::with_capacity(64));
    let spilled: SmallVec<[u64; 4]> = SmallVec::with_capacity(64);
    assert_eq!(spilled.shallow_size_of_excluding_this(&mut MallocSizeOfOps::computed()), 512);
}

#[test]
fn smol_str() {
    use ::smol_str::SmolStr;
    exact("short", || SmolStr::new("short"));
    exact("static", || SmolStr::new_static("static text that is too long for the place"));
    exact("of std's static", || SmolStr::from(Arc::<str>::default()));
    exact_computed("long, twice", || {
        let long = SmolStr::new(text(100));
        [long.clone(), long]
    });
}

#[test]
fn thin_vec() {
    use ::thin_vec::ThinVec;
    exact_computed("ThinVec", || (0..30).map(text).collect::<ThinVec<_>>());
    exact_computed("ThinVec of u8", || ThinVec::<u8>::with_capacity(7));
    exact_computed("ThinVec of u128", || ThinVec::<u128>::with_capacity(7));
    exact("empty ThinVec", ThinVec::<u8>::new);
}

#[test]
fn time() {
    use ::time::{Duration, OffsetDateTime};
    exact("OffsetDateTime", || vec![(OffsetDateTime::UNIX_EPOCH, Duration::MAX); 9]);
}

#[test]
fn tinyvec() {
    use ::tinyvec::{ArrayVec, TinyVec};
    exact("in place", || (0..3).map(text).collect::<TinyVec<[String; 4]>>());
    exact("on the heap", || (0..30).map(text).collect::<TinyVec<[String; 4]>>());
    exact("ArrayVec", || (0..3).map(text).collect::<ArrayVec<[String; 4]>>());
}

#[test]
fn tokio() {
    use ::tokio::sync::{Mutex, Notify, OnceCell, RwLock, Semaphore, mpsc, oneshot, watch};
    exact("Mutex", || Mutex::new(text(9)));
    exact("RwLock", || RwLock::new(text(9)));
    exact("OnceCell", || OnceCell::new_with(Some(text(9))));
    exact("Semaphore", || Semaphore::new(3));
    exact("Notify", Notify::new);
    let (mutex, lock) = (Mutex::new(text(9)), RwLock::new(text(9)));
    let (_held, _written) = (mutex.try_lock().unwrap(), lock.try_write().unwrap());
    skipped(&mutex, SkipReason::Locked);
    skipped(&lock, SkipReason::Locked);
    skipped(&mpsc::channel::<u8>(3).0, SkipReason::Opaque);
    skipped(&oneshot::channel::<u8>().1, SkipReason::Opaque);
    skipped(&watch::channel(1_u8).1, SkipReason::Opaque);
}

#[test]
fn triomphe() {
    use ::triomphe::{Arc, ThinArc, UniqueArc};
    exact("Arc, twice", || {
        let arc = Arc::new(text(50));
        [arc.clone(), arc]
    });
    exact("Arc<u8>", || Arc::new(1_u8));
    exact("Arc<u128>", || Arc::new(1_u128));
    exact_computed("UniqueArc", || UniqueArc::new(text(50)));
    exact_computed("ThinArc, twice", || {
        let arc = ThinArc::from_header_and_iter(text(5), (0..7).map(text));
        [arc.clone(), arc]
    });
}

#[test]
fn url() {
    use ::url::{Host, Url};
    at_least("Url", 60, || {
        Url::parse("https://example.org/a/long/path?with=a&query#and-a-fragment").unwrap()
    });
    exact("Host", || Host::Domain(text(9)));
}

#[test]
fn uuid() {
    exact("Uuid", || vec![::uuid::Uuid::nil(); 9]);
}

/// For each crate: its name, how exactly the library sees its types, and a note.
const CRATES: &[(&str, &str, &str)] = &[
    ("arc-swap", "computed", "the current pointer, counted once"),
    ("arrayvec", "exact", "in place"),
    ("bitvec", "exact", ""),
    ("bumpalo", "computed", "all chunks; memory that the values own elsewhere is not seen"),
    (
        "bytes",
        "at least",
        "the visible bytes of a `Bytes` with one owner, the share of a `BytesMut`; a shared or static `Bytes` is opaque",
    ),
    ("chrono", "exact", "plain data"),
    ("compact_str", "computed", ""),
    (
        "dashmap",
        "exact",
        "`DashMap` if the program enables dashmap's feature `raw-api`, otherwise opaque; `DashSet` and `ReadOnlyView` are opaque",
    ),
    ("either", "exact", "in place"),
    ("hashbrown", "computed", "also after removals; only maps and sets whose keys are `Hash + Eq`"),
    ("indexmap", "computed", "after removals: at least"),
    ("lru", "at least", "all entries; the index table is larger than counted while the cache is not full"),
    ("num-bigint", "at least", "the digits, not their capacity"),
    ("once_cell", "exact", "values that the function of a `Lazy` captured are opaque"),
    ("ordered-float", "exact", "in place"),
    ("parking_lot", "exact", "recorded as skipped while locked; version 0.13 needs Rust 1.95"),
    (
        "petgraph",
        "exact",
        "`Graph`; `StableGraph` computed, `GraphMap` at least, `MatrixGraph` and `Csr` opaque",
    ),
    ("roaring", "at least", "the containers and their list; version 0.12 needs Rust 1.90"),
    (
        "serde_json",
        "computed",
        "at least with `preserve_order`; numbers opaque with `arbitrary_precision`; a `RawValue` needs a function, such as `ops.enclosing(raw.get().as_ptr(), Layout::for_value(raw.get()))`",
    ),
    ("slab", "computed", ""),
    (
        "slotmap",
        "computed",
        "`DenseSlotMap` and `SparseSecondaryMap` at least; not the deprecated `HopSlotMap`",
    ),
    ("smallvec", "exact", ""),
    ("smol_str", "computed", "shared text is counted once"),
    ("thin-vec", "computed", "not with its feature `gecko-ffi`"),
    ("time", "exact", "plain data"),
    ("tinyvec", "exact", ""),
    (
        "tokio",
        "exact",
        "`sync`: locks and cells, recorded as skipped while locked; channels and `Barrier` opaque",
    ),
    ("triomphe", "exact", "counted once; `UniqueArc` and `ThinArc` computed"),
    ("url", "at least", "the text, not its capacity"),
    ("uuid", "exact", "in place"),
];

fn manifest(path: &str) -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(path).expect("the manifest exists").parse().expect("the manifest is TOML")
}

/// The part of a version that a breaking release changes, without dots: 1 of 1.9, 017 of 0.17.
fn major(version: &str) -> String {
    let mut parts = version.split('.');
    match parts.next().expect("a version has three parts") {
        "0" => format!("0{}", parts.next().expect("a version has three parts")),
        major => major.to_owned(),
    }
}

#[test]
fn the_table_in_the_documentation_has_every_feature() {
    let reporter = manifest("reporter/Cargo.toml");
    let not_a_crate =
        ["default", "derive", "gc-arena07", "gzip", "jemalloc07", "live", "mimalloc01", "serde"];
    let features: Vec<&str> = reporter["features"].as_table().unwrap().keys().map(String::as_str).collect();
    let features: Vec<&str> = features.into_iter().filter(|name| !not_a_crate.contains(name)).collect();

    let workspace = manifest("Cargo.toml");
    let mut text = String::from(
        "The crates whose types are measured, each behind a feature named after the crate and its major version.\n\n",
    );
    text.push_str("| feature | crate | how exactly | what to know |\n|---|---|---|---|\n");
    let mut listed = Vec::new();
    for (name, seen, note) in CRATES {
        let dependency = &workspace["workspace"]["dependencies"][name];
        let version = dependency.as_str().or_else(|| dependency["version"].as_str()).unwrap();
        let feature = format!("{name}{}", major(version));
        writeln!(text, "| `{feature}` | {name} {version} | {seen} | {note} |").unwrap();
        listed.push(feature);
    }
    assert_eq!(features, listed, "the table must list the features of reporter/Cargo.toml");
    golden("reporter/src/docs/third_party.md", &text);
}

/// A reporter with one report.
struct One;

impl MemoryReporter for One {
    fn collect_reports(&self, out: &mut Reports) {
        out.report("one", Kind::Other, Units::Count, 1, "One thing.");
    }
}

/// Asserts the numbers of reports and warnings, and that the wrapped reporter gives the name.
fn gives(reporter: &dyn MemoryReporter, reports: usize, warnings: usize) {
    let set = Collection::new().with(reporter).collect();
    assert_eq!((set.len(), set.warnings().len()), (reports, warnings));
    assert_eq!(reporter.name(), std::any::type_name::<One>());
}

#[test]
fn locks_and_cells_of_reporters_are_reporters() {
    gives(&once_cell::sync::OnceCell::<One>::new(), 0, 0);
    gives(&once_cell::unsync::OnceCell::with_value(One), 1, 0);
    let lazy = once_cell::sync::Lazy::new(|| One);
    gives(&lazy, 0, 0);
    once_cell::sync::Lazy::force(&lazy);
    gives(&lazy, 1, 0);
    let mutex = parking_lot::Mutex::new(One);
    gives(&mutex, 1, 0);
    let guard = mutex.lock();
    gives(&mutex, 0, 1);
    drop(guard);
    let lock = parking_lot::RwLock::new(One);
    let reader = lock.read();
    gives(&lock, 1, 0);
    drop(reader);
    let writer = lock.write();
    gives(&lock, 0, 1);
    drop(writer);
    let mutex = tokio::sync::Mutex::new(One);
    let guard = mutex.try_lock();
    gives(&mutex, 0, 1);
    drop(guard);
    gives(&mutex, 1, 0);
    gives(&tokio::sync::RwLock::new(One), 1, 0);
    gives(&tokio::sync::OnceCell::new_with(Some(One)), 1, 0);
}
