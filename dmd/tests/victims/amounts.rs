//! A program whose reporters claim memory by blocks, by amounts, and by counters. Usage, with `DMD`:
//! `amounts report FILE` or `amounts dump FILE`.

use std::alloc::System;
use std::collections::HashMap;
use std::ffi::c_void;
use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, Mutex};

use memory_reporter::{
    CollectOptions, MallocSizeOf, MemoryReporter, Reports, collect_report, collect_reports,
    counters::{CounterSite, CountingMalloc, MemoryCounter},
    register_strong,
};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");

/// All blocks of this counter are marked when they are allocated, so the row for amounts does not contain it.
static ZLIB: MemoryCounter = MemoryCounter::new();
struct Zlib;
impl CounterSite for Zlib {
    const COUNTER: &'static MemoryCounter = &ZLIB;
}
memory_reporter::define_reporter!("explicit/zlib", Heap, Bytes, ZLIB.bytes(), "Memory used by zlib.");

/// The row for amounts contains the counter's 400,000 bytes.
static TEXTURES: MemoryCounter = MemoryCounter::new();
memory_reporter::define_reporter!(
    "explicit/textures",
    Heap,
    Bytes,
    TEXTURES.bytes(),
    "Memory used by textures."
);

/// All blocks of this counter are known, so the row for amounts does not contain it.
static SOUNDS: MemoryCounter = MemoryCounter::new();
memory_reporter::define_reporter!("explicit/sounds", Heap, Bytes, SOUNDS.bytes(), "Memory used by sounds.");

/// This counter gets pointers that do not lead to the start of a block. The row for amounts contains the counter's
/// 7,000 bytes.
static PARTS: MemoryCounter = MemoryCounter::new();
memory_reporter::define_reporter!("explicit/parts", Heap, Bytes, PARTS.bytes(), "Memory used by parts.");

/// A table without entries contains no pointer to its block, so the row for amounts contains it.
static EMPTIED: Mutex<Option<HashMap<u64, u64>>> = Mutex::new(None);
memory_reporter::define_reporter!("explicit/emptied", Heap, &EMPTIED, "Memory used by the table.");

#[derive(Default)]
struct Sizes {
    keys: usize,
    values: usize,
}

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = Sizes)]
struct Cache {
    #[malloc_size_of(add_to = keys)]
    keys: Vec<u64>,
    #[malloc_size_of(add_to = values)]
    values: Vec<u8>,
}

static CACHE: Mutex<Cache> = Mutex::new(Cache { keys: Vec::new(), values: Vec::new() });

struct Mixed;

impl MemoryReporter for Mixed {
    fn name(&self) -> &str {
        "mixed"
    }

    fn collect_reports(&self, out: &mut Reports) {
        // The value states its own bytes, and passes no pointer to a block.
        out.heap_with(
            "explicit/stated",
            |ops| ops.stated(self, 25_000),
            "Memory used by a value that states it.",
        );
        // Two amounts of measured blocks.
        let sizes: Sizes = out.split(&*CACHE.lock().expect("unpoisoned"));
        collect_report!(out, "explicit/cache/keys", Heap, Bytes, sizes.keys, "Memory used by keys.");
        collect_report!(out, "explicit/cache/values", Heap, Bytes, sizes.values, "Memory used by values.");
        // The row for amounts contains these six reports, with 10,000 to 60,000 bytes each.
        for index in 1..=6 {
            let path = format!("explicit/scratch/{index}");
            collect_report!(out, path, Heap, Bytes, 10_000 * index, "Memory used by scratch space.");
        }
        // The row for amounts leaves these reports out, since the memory is outside of the heap or of `explicit/`.
        collect_report!(out, "explicit/mapped", NonHeap, Bytes, 1_000_000, "Memory of a mapped file.");
        collect_report!(out, "cache-bytes", Other, Bytes, ZLIB.bytes(), "Memory used by zlib.");
    }
}

#[inline(never)]
fn count_textures() {
    for _ in 0..4 {
        let texture = Box::leak(vec![1_u8; 100_000].into_boxed_slice());
        // The owner passes no address of the memory.
        TEXTURES.allocated(core::ptr::null::<u8>(), 100_000);
        black_box(texture);
    }
}

/// 400,000 bytes remain after one of five blocks is freed.
#[inline(never)]
fn count_sounds() {
    for number in 0..5 {
        let sound = vec![1_u8; 100_001].into_boxed_slice();
        SOUNDS.allocated(&raw const *sound, 100_000);
        if number == 2 {
            SOUNDS.freed(&raw const *sound, 100_000);
        } else {
            black_box(Box::leak(sound));
        }
    }
}

/// Each part is in the middle of a page's block, or in no block.
#[inline(never)]
fn count_parts() {
    let pages = PAGES.lock().expect("unpoisoned");
    for page in &pages[..5] {
        PARTS.allocated(&raw const page[100], 1000);
    }
    static OUTSIDE: [u8; 8] = [1; 8];
    PARTS.allocated(&raw const OUTSIDE, 2000);
}

#[inline(never)]
fn forget_stated() {
    black_box(Box::leak(vec![1_u8; 25_000].into_boxed_slice()));
}

#[inline(never)]
fn forget_scratch() {
    black_box(Box::leak(vec![1_u8; 210_000].into_boxed_slice()));
}

/// 500,000 bytes remain after some blocks have moved and some are freed.
#[inline(never)]
fn compress() {
    type Malloc = CountingMalloc<Zlib>;
    let blocks: Vec<*mut c_void> = (0..10).map(|_| Malloc::malloc(60_000)).collect();
    for (index, block) in blocks.into_iter().enumerate() {
        if index % 2 == 0 {
            // SAFETY: `malloc` returned the live block, and no other code uses it.
            black_box(unsafe { Malloc::realloc(block, 100_000) });
        } else {
            // SAFETY: as above.
            unsafe { Malloc::free(block) };
        }
    }
}

fn main() {
    let [kind, file] = [1, 2].map(|at| std::env::args().nth(at).expect("two arguments"));
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    *CACHE.lock().expect("unpoisoned") = Cache { keys: vec![1; 10_000], values: vec![1; 20_000] };
    let mut table: HashMap<u64, u64> = (0..1000).map(|n| (n, n)).collect();
    table.clear();
    *EMPTIED.lock().expect("unpoisoned") = Some(table);
    register_strong(Arc::new(Mixed)).forever();
    count_textures();
    count_sounds();
    count_parts();
    forget_stated();
    forget_scratch();
    compress();
    if kind == "dump" {
        dmd::report_and_dump(Path::new(&file)).expect("written");
        return;
    }
    drop(collect_reports(&CollectOptions::new()));
    let reports = collect_reports(&CollectOptions::new());
    memory_reporter::file::write(Path::new(&file), &reports).expect("writable");
}
