//! Caches, arenas, texts, messages and mappings.

use std::io::Write as _;
use std::sync::Arc;

use memory_reporter::{Collection, Kind, MallocSizeOf, amounts};

use crate::{at_least, exact, text, ways};

#[test]
fn caches() {
    let moka = || {
        let cache = moka::sync::Cache::new(1000);
        (0..100_u32).for_each(|i| cache.insert(i, Arc::new(text(5000))));
        cache
    };
    at_least("moka", 50, moka, ways::moka::measure);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let moka_future = || {
        let cache = moka::future::Cache::new(1000);
        runtime.block_on(async {
            for i in 0..100 {
                ways::moka_future::insert(&cache, i, Arc::new(text(5000))).await;
            }
        });
        cache
    };
    at_least("moka::future", 50, moka_future, ways::moka_future::measure);
    let quick = || {
        let cache = quick_cache::sync::Cache::new(1000);
        (0..100_u32).for_each(|i| cache.insert(i, Arc::new(text(5000))));
        cache
    };
    at_least("quick_cache", 50, quick, ways::quick_cache::measure);
}

#[test]
fn maps_and_arenas() {
    let map = || (0..100).map(|i| (i, text(i))).collect::<hashlink::LinkedHashMap<_, _>>();
    at_least("hashlink", 80, map, ways::hashlink::measure);
    let typed = || {
        let arena = typed_arena::Arena::with_capacity(100);
        (0..100_u64).for_each(|i| {
            arena.alloc(i);
        });
        arena
    };
    at_least("typed-arena", 90, typed, ways::typed_arena::measure);
    let ids = || {
        let mut arena = id_arena::Arena::new();
        (0..100).for_each(|i| {
            arena.alloc(text(i));
        });
        arena
    };
    at_least("id-arena", 80, ids, ways::id_arena::measure);
    let generations = || {
        let mut arena = generational_arena::Arena::with_capacity(100);
        (0..50).for_each(|i| {
            arena.insert(text(i));
        });
        arena
    };
    exact("generational-arena", generations, ways::generational_arena::measure);
}

#[test]
fn texts() {
    exact("bstr", || bstr::BString::from(text(77)), ways::bstr::measure);
    exact("camino", || camino::Utf8PathBuf::with_capacity(99), ways::camino::measure);
    exact("bit-vec", || bit_vec::BitVec::from_elem(1000, true), ways::bit_vec::measure);
    at_least("fixedbitset", 95, || fixedbitset::FixedBitSet::with_capacity(1000), ways::fixedbitset::measure);
    let record = || csv::ByteRecord::from(vec![text(500); 9]);
    at_least("csv", 50, record, ways::csv::measure);
    let version = || semver::Version::parse("1.0.0-alpha+20130313144700.0123456789").unwrap();
    at_least("semver", 80, version, ways::semver::measure);
    exact("short semver", || semver::Version::parse("1.0.0-beta").unwrap(), ways::semver::measure);
}

#[test]
fn arrays() {
    exact("ndarray", || ndarray::Array2::<f64>::zeros((30, 20)), ways::ndarray::measure);
    let texts = || ndarray::Array1::from_shape_fn(30, text);
    exact("ndarray of texts", texts, ways::ndarray::measure);
}

#[test]
fn figures_that_the_crates_state() {
    let editor = || ways::ropey::Editor { text: ropey::Rope::from_str(&text(100_000)) };
    at_least("ropey", 85, editor, MallocSizeOf::size_of_excluding_this);
    let lexer = || ways::regex_automata::Lexer {
        word: regex_automata::meta::Regex::new("(?-u)[a-z]+[0-9]").unwrap(),
    };
    at_least("regex-automata", 20, lexer, MallocSizeOf::size_of_excluding_this);
    let names = || {
        let mut interned = lasso::Rodeo::default();
        (0..1000).for_each(|i| {
            interned.get_or_intern(format!("name {i}"));
        });
        ways::lasso::Names { interned }
    };
    at_least("lasso", 10, names, MallocSizeOf::size_of_excluding_this);
}

#[test]
fn messages() {
    let document = || ways::prost::Document {
        title: text(9),
        pages: (0..7).map(|n| ways::prost::Page { image: vec![0; n] }).collect(),
        words: (0..100).map(|n| (text(n), n as i64)).collect(),
    };
    exact("prost", document, MallocSizeOf::size_of_excluding_this);
    let list = || toml::Value::Array((0..9).map(|n| toml::Value::String(text(n))).collect());
    exact("toml", list, ways::toml::Value::measure);
    let table = || {
        let entries = (0..100).map(|n| (format!("{n:50}"), toml::Value::String(text(n))));
        toml::Value::Table(entries.collect())
    };
    at_least("table of toml", 50, table, ways::toml::Value::measure);

    let request = || {
        let mut request = http::Request::new(text(99));
        for i in 0..20 {
            let name: http::HeaderName = format!("x-{i}").parse().unwrap();
            request.headers_mut().insert(name, http::HeaderValue::from_static("value"));
        }
        request
    };
    at_least("http", 50, request, ways::hyper::measure);
}

#[test]
fn mapped_files() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![1; 1 << 20]).unwrap();
    #[allow(unsafe_code, reason = "maps a file")]
    // SAFETY: the file has no name, and no other process uses it.
    let file = unsafe { memmap2::Mmap::map(&file) }.unwrap();
    assert_eq!(file.iter().map(|byte| u32::from(*byte)).sum::<u32>(), 1 << 20, "all pages are touched");
    let set = Collection::new().with(&ways::memmap2::Index { file }).collect();
    let rows: Vec<_> = set.iter().map(|report| (report.path, report.kind, report.amount)).collect();
    let expected = [("explicit/index/mapped", Kind::NonHeap, 1 << 20)];
    assert_eq!(rows, if cfg!(target_os = "linux") { expected.as_slice() } else { &[] });
}

/// Only pages that a program has touched are resident.
#[cfg(target_os = "linux")]
#[test]
fn touched_pages() {
    const PAGE: usize = 4096;
    let page = memmap2::MmapMut::map_anon(1).unwrap();
    assert_eq!(amounts::resident_of(&page[..]), Some(0));
    let mut memory = memmap2::MmapMut::map_anon(1000 * PAGE).unwrap();
    memory.advise(memmap2::Advice::NoHugePage).unwrap();
    let in_pages = |memory: &memmap2::MmapMut| amounts::resident_of(&memory[..]).unwrap();
    assert_eq!(in_pages(&memory), 0);
    memory[..700 * PAGE].fill(1);
    let touched = in_pages(&memory);
    // Pages may be larger than 4 KiB.
    assert!((700 * PAGE as u64..=800 * PAGE as u64).contains(&touched), "{touched}");
    assert!(amounts::resident_of(&memory[..PAGE]).unwrap() >= PAGE as u64);
    assert_eq!(amounts::resident_of::<u8>(&[]), Some(0));
}
