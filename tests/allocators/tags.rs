//! Tags under the global allocator of this binary: each block has the right tag, and any thread may free it.

use core::alloc::Layout;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::alloc;
use std::collections::{BTreeMap, HashMap};
use std::panic::catch_unwind;
use std::rc::Rc;
use std::sync::mpsc;

use allocators::Random;
use memory_reporter::{
    CollectOptions, MallocSizeOf, MallocSizeOfOps, MemoryReporter, ReportSet, Reports, collect_report,
    collect_reports,
    counters::{CounterSite, CountingMalloc, MemoryCounter},
    malloc_size_of,
    measure::ErasedReading,
    register_local, tag,
    tags::{Tag, TaggedFuture, spawn_tagged},
    tree::Forest,
};

fn reports() -> ReportSet {
    collect_reports(&CollectOptions::new())
}

/// The amount at a path; 0 if there is no report.
fn amount(path: &str) -> usize {
    let set = reports();
    set.iter().filter(|report| report.path == path).map(|report| report.amount as usize).sum()
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[test]
fn a_tag_has_what_its_thread_allocates_and_nothing_else() {
    let before = text(100);
    let guard = tag("explicit/values");
    let values = (Box::new(1_u8), vec![text(3), text(1000)], vec![1_u8; 20_000], vec![0_u8; 5 << 20]);
    drop(text(77));
    drop(guard);
    let after = (text(100), before);
    assert_eq!(amount("explicit/values"), malloc_size_of(&values));
    drop(values);
    assert_eq!(amount("explicit/values"), 0);
    drop(after);
}

#[test]
fn a_block_without_memory_behind_it_has_its_size() {
    let large = Tag::new("explicit/large").run(|| Vec::<u8>::with_capacity(1 << 32));
    assert_eq!(amount("explicit/large"), malloc_size_of(&large));
    assert!(malloc_size_of(&large) >= 1 << 32);
}

#[test]
fn threads_free_the_blocks_of_each_other() {
    const THREADS: usize = 8;
    let paths: Vec<String> = (0..THREADS).map(|i| format!("explicit/threads/{i}")).collect();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel::<Vec<String>>()).unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(i, receiver)| {
            let (senders, path) = (senders.clone(), paths[i].clone());
            std::thread::spawn(move || {
                let mut random = Random::new(i as u64 + 1);
                let mut kept = Vec::new();
                for round in 0..2000 {
                    let mut made = tag(&path);
                    let own: Vec<String> = (0..8).map(|_| text(random.below(300) as usize)).collect();
                    drop(core::mem::replace(&mut made, Tag::NONE.enter()));
                    let to = random.below(THREADS as u64) as usize;
                    if round % 100 == 0 {
                        kept.push(own);
                    } else {
                        // The thread may have ended.
                        let _ = senders[to].send(own);
                    }
                    while let Ok(foreign) = receiver.try_recv() {
                        drop(foreign);
                    }
                }
                (kept, receiver)
            })
        })
        .collect();
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    drop(senders);
    let kept: Vec<Vec<Vec<String>>> = ended
        .into_iter()
        .map(|(kept, receiver)| {
            drop(receiver.iter().collect::<Vec<_>>());
            kept
        })
        .collect();
    for (path, kept) in paths.iter().zip(&kept) {
        // The list itself was allocated without the tag.
        let bytes: usize = kept.iter().map(malloc_size_of).sum();
        assert!(bytes > 0);
        assert_eq!(amount(path), bytes, "{path}");
    }
}

#[test]
fn the_innermost_tag_counts_and_guards_end_in_any_order() {
    let (outer, inner) = (Tag::new("explicit/outer"), Tag::new("explicit/inner"));
    let first = outer.enter();
    let mut values = vec![Box::new([1_u8; 100])];
    values.reserve_exact(7);
    let second = inner.enter();
    assert_eq!(Tag::current(), inner);
    let of_inner = text(200);
    drop(first);
    assert_eq!(Tag::current(), inner);
    let more = text(300);
    drop(second);
    assert_eq!(Tag::current(), Tag::NONE);
    let third = inner.enter();
    let none = Tag::NONE.enter();
    let without = text(5000);
    drop((none, third));
    assert_eq!(amount("explicit/outer"), malloc_size_of(&values));
    assert_eq!(amount("explicit/inner"), malloc_size_of(&of_inner) + malloc_size_of(&more));
    drop(without);
}

#[test]
fn what_a_collection_allocates_has_no_tag() {
    let _tag = tag("explicit/collects");
    let value = text(100);
    let set = reports();
    assert_eq!(amount("explicit/collects"), malloc_size_of(&value));
    assert_eq!(Tag::current(), Tag::new("explicit/collects"));
    drop(set);
}

#[test]
fn a_panic_ends_the_tag() {
    let kept = catch_unwind(|| {
        let _tag = tag("explicit/panics");
        let kept = text(400);
        let _inner = tag("explicit/panics/inner");
        let result = catch_unwind(|| {
            let _third = tag("explicit/panics/third");
            std::panic::resume_unwind(Box::new(kept));
        });
        assert_eq!(Tag::current(), Tag::new("explicit/panics/inner"));
        std::panic::resume_unwind(result.unwrap_err())
    });
    assert_eq!(Tag::current(), Tag::NONE);
    let kept: Result<(), _> = kept;
    let kept = kept.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(amount("explicit/panics"), malloc_size_of(&*kept));
    assert!(amount("explicit/panics/third") > 0, "the tag must have the panic's own box");
}

#[test]
fn a_block_keeps_its_tag_while_it_grows() {
    let (first, second) = (Tag::new("explicit/grows/first"), Tag::new("explicit/grows/second"));
    let mut grown: Vec<u64> = first.run(|| vec![1]);
    grown.extend(0..1000);
    second.run(|| grown.extend(0..100_000));
    grown.truncate(3);
    grown.shrink_to_fit();
    assert_eq!(grown, [1, 0, 1]);
    assert_eq!(amount("explicit/grows/first"), malloc_size_of(&grown));
    // If a block without a tag grows, it gets the tag of the current thread. If it shrinks, it gets no tag.
    let mut shrunk: Vec<u8> = Vec::with_capacity(5000);
    second.run(|| shrunk.shrink_to(100));
    assert_eq!(amount("explicit/grows/second"), 0);
    let mut other = vec![7_u8];
    second.run(|| other.extend([8; 100]));
    other.extend([9; 10_000]);
    assert_eq!((other[0], other[1], other[100], other[101], other.len()), (7, 8, 8, 9, 10_101));
    assert_eq!(amount("explicit/grows/second"), malloc_size_of(&other));
}

/// Compares all hooks, in a random order, with a model.
#[test]
fn any_sequence_of_calls_is_exact() {
    // The table of tags has room for three tags in each page of memory. It stores further tags as details.
    for count in [3, 12] {
        let tags: Vec<Tag> = (0..count).map(|i| Tag::new(format!("explicit/random/{i}"))).collect();
        let mut random = Random::new(5);
        let mut live: Vec<(*mut u8, Layout, usize, u8)> = Vec::with_capacity(20_000);
        let sizes = |random: &mut Random| match random.below(4) {
            0 => 1 + random.below(16) as usize,
            1 => 1 + random.below(200) as usize,
            2 => 1 + random.below(40_000) as usize,
            _ => 8,
        };
        for step in 0..20_000 {
            let current = random.below(count as u64 + 1) as usize;
            let _tag = tags.get(current).copied().unwrap_or(Tag::NONE).enter();
            let fill = step as u8;
            match random.below(3) {
                0 => {
                    let layout = Layout::from_size_align(sizes(&mut random), 1 << random.below(9)).unwrap();
                    let is_zeroed = step % 2 != 0;
                    let allocate = if is_zeroed { alloc::alloc_zeroed } else { alloc::alloc };
                    // SAFETY: the size is not 0.
                    let block = unsafe { allocate(layout) };
                    assert_eq!(block.addr() % layout.align(), 0);
                    if is_zeroed {
                        // SAFETY: `block` is a live block of this size, and all its bytes are 0.
                        let bytes = unsafe { core::slice::from_raw_parts(block, layout.size()) };
                        assert!(bytes.iter().all(|b| *b == 0));
                    }
                    // SAFETY: the block has this size.
                    unsafe { block.write_bytes(fill, layout.size()) };
                    live.push((block, layout, current, fill));
                }
                1 if !live.is_empty() => {
                    let place = random.below(live.len() as u64) as usize;
                    let (block, layout, owner, fill) = live[place];
                    let size = sizes(&mut random);
                    // SAFETY: `block` is a live block of this layout.
                    let moved = unsafe { alloc::realloc(block, layout, size) };
                    // SAFETY: `moved` is a live block with at least this many bytes, and the test has filled them.
                    let bytes = unsafe { core::slice::from_raw_parts(moved, size.min(layout.size())) };
                    assert!(bytes.iter().all(|b| *b == fill));
                    // SAFETY: the block has this size.
                    unsafe { moved.write_bytes(fill, size) };
                    let owner = if owner == count && size > layout.size() { current } else { owner };
                    let layout = Layout::from_size_align(size, layout.align()).unwrap();
                    live[place] = (moved, layout, owner, fill);
                }
                2 if !live.is_empty() => {
                    let (block, layout, ..) = live.swap_remove(random.below(live.len() as u64) as usize);
                    // SAFETY: `block` is a live block of this layout.
                    unsafe { alloc::dealloc(block, layout) };
                }
                _ => {}
            }
        }
        for (i, owned) in tags.iter().enumerate() {
            let bytes: usize = live
                .iter()
                .filter(|block| block.2 == i)
                .map(|(block, layout, ..)| usable(*block, *layout))
                .sum();
            assert!(bytes > 0);
            assert_eq!(amount(&format!("explicit/random/{i}")), bytes, "{owned:?}");
        }
        for (block, layout, ..) in live {
            // SAFETY: `block` is a live block of this layout.
            unsafe { alloc::dealloc(block, layout) };
        }
    }
}

#[test]
fn the_table_takes_at_most_a_fiftieth_of_the_blocks() {
    let mut random = Random::new(7);
    let tag = Tag::new("explicit/many-small-blocks");
    let values: Vec<String> =
        tag.run(|| (0..200_000).map(|_| text(16 + random.below(400) as usize)).collect());
    let (blocks, table) = (amount("explicit/many-small-blocks"), amount("explicit/memory-reporter/tags"));
    assert_eq!(blocks, malloc_size_of(&values));
    assert!(table > 0 && table * 50 <= blocks, "{table} bytes for {blocks}");
}

/// A walk finds the blocks of a map by addresses inside them, whatever blocks are next to them.
#[test]
fn blocks_are_found_from_inside_among_others() {
    let tags: Vec<Tag> =
        (0..5).map(|i| Tag::new(format!("explicit/inside/{i}"))).chain([Tag::NONE]).collect();
    let mut random = Random::new(11);
    let mut kept: Vec<(usize, BTreeMap<u64, u64>, String)> = Vec::new();
    for _ in 0..2000 {
        let owner = random.below(tags.len() as u64) as usize;
        let entries = random.below(30);
        let map = tags[owner].run(|| (0..entries).map(|key| (key, key)).collect());
        let beside = random.below(tags.len() as u64) as usize;
        let length = 1 + random.below(40) as usize;
        kept.push((owner, map, tags[beside].run(|| text(length))));
        if random.below(3) == 0 {
            kept.swap_remove(random.below(kept.len() as u64) as usize);
        }
    }
    let before: Vec<usize> = (0..5).map(|i| amount(&format!("explicit/inside/{i}"))).collect();
    let (maps, _texts): (Vec<_>, Vec<_>) =
        kept.into_iter().map(|(owner, map, text)| ((owner, map), text)).unzip();
    let of_maps = |tag| {
        maps.iter().filter(|(owner, _)| *owner == tag).map(|(_, map)| malloc_size_of(map)).sum::<usize>()
    };
    let expected: Vec<usize> = (0..5).map(of_maps).collect();
    let _registered = register_local(Rc::new(Owner(maps)));
    for (tag, before) in before.into_iter().enumerate() {
        // The walk sees only the inside of a node's block, so the measured size does not contain the block's slop.
        let (taken, least) = (before - amount(&format!("explicit/inside/{tag}")), expected[tag]);
        assert!(least > 0 && (least..=least + least / 4).contains(&taken), "{taken} of {least}");
    }
}

fn usable(block: *mut u8, layout: Layout) -> usize {
    let mut ops = MallocSizeOfOps::measured().expect("an allocator is declared");
    // SAFETY: the callers pass a live block of the global allocator, with its layout.
    unsafe { ops.block(block, layout) }
}

struct Owner<T>(T);

impl<T: MallocSizeOf> MemoryReporter for Owner<T> {
    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(out, "explicit/owner", Heap, &self.0, "Memory used by the owner.");
    }
}

#[test]
fn a_reporter_wins_over_a_tag() {
    let path = "explicit/beside-reporters";
    let guard = tag(path);
    let map: HashMap<u32, String> = (0..100).map(|i| (i, text(i as usize))).collect();
    let tree: BTreeMap<u32, String> = (0..1000).map(|i| (i, text(3))).collect();
    let shared = Rc::new(text(50));
    let values = Rc::new((map, tree, Rc::clone(&shared), vec![shared; 3]));
    let rest = text(700);
    drop(guard);
    let whole = amount(path);
    assert!(whole > malloc_size_of(&*values));
    let registered = register_local(Rc::new(Owner(Rc::clone(&values))));
    let owned = amount("explicit/owner");
    assert_eq!(amount(path), malloc_size_of(&rest));
    // For some blocks the reporter has only a pointer to the inside, so its amount lacks the slop of these blocks.
    assert!((owned..owned + whole / 4).contains(&(whole - malloc_size_of(&rest))), "{owned} of {whole}");
    drop(registered);
    assert_eq!(amount(path), whole);
    drop(values);
    assert_eq!(amount(path), malloc_size_of(&rest));
}

#[test]
fn a_reporter_of_a_part_of_a_block_takes_that_part_from_the_tag() {
    struct Half(Rc<Vec<u8>>, usize);
    impl MemoryReporter for Half {
        fn collect_reports(&self, out: &mut Reports) {
            let half = &self.0[self.1..self.1 + self.0.len() / 2];
            let walk =
                |ops: &mut MallocSizeOfOps<ErasedReading<'_>>| ops.enclosing(half, Layout::for_value(half));
            out.heap_with("explicit/half", walk, "Memory used by one half of a buffer.");
        }
    }
    let path = "explicit/halves";
    let (buffer, other) = Tag::new(path).run(|| (Rc::new(vec![1_u8; 64 << 10]), text(5000)));
    let whole = amount(path);
    // Only the first half has a reporter: the second half starts in the middle of the block, so its pointer does not
    // lead to the tag.
    let first = register_local(Rc::new(Half(Rc::clone(&buffer), 0)));
    assert_eq!(amount(path), whole - (32 << 10));
    drop(first);
    assert_eq!(amount(path), whole);
    drop((buffer, other));
}

#[test]
fn only_what_a_reporter_reports_is_taken_from_a_tag() {
    struct Faulty(Vec<String>);
    impl MemoryReporter for Faulty {
        fn collect_reports(&self, out: &mut Reports) {
            out.heap("elsewhere/faulty", &self.0, "Memory that is not in the tree.");
            out.heap("explicit//faulty", &self.0, "Memory at a path that no report can have.");
            let caught = catch_unwind(core::panic::AssertUnwindSafe(|| {
                out.heap_with(
                    "explicit/caught",
                    |ops| {
                        self.0.size_of_excluding_this(ops);
                        panic!("on purpose")
                    },
                    "Memory whose reading panics.",
                );
            }));
            assert!(caught.is_err());
        }
    }
    struct Panics(Vec<String>);
    impl MemoryReporter for Panics {
        fn collect_reports(&self, out: &mut Reports) {
            out.heap("explicit/panics-later", &self.0, "Memory that is left out.");
            panic!("on purpose");
        }
    }
    let (faulty, panics) = Tag::new("explicit/faulty").run(|| (vec![text(50); 9], vec![text(60); 9]));
    let bytes = malloc_size_of(&faulty) + malloc_size_of(&panics);
    let _first = register_local(Rc::new(Faulty(faulty)));
    let _second = register_local(Rc::new(Panics(panics)));
    assert_eq!(amount("explicit/faulty"), bytes);
}

#[test]
fn threads_jobs_and_futures_inherit_where_asked() {
    let parent = Tag::new("explicit/parent");
    let guard = parent.enter();
    let spawned = spawn_tagged(|| text(100));
    let plain = std::thread::spawn(|| text(100));
    let job = Tag::current().wrap(|| text(200));
    let future = TaggedFuture::new(async { text(300) });
    drop(guard);
    let values = [spawned.join().unwrap(), std::thread::spawn(job).join().unwrap(), poll(future)];
    let plain = plain.join().unwrap();
    assert_eq!(Tag::current(), Tag::NONE);
    let bytes: usize = values.iter().map(malloc_size_of).sum();
    // `join` has dropped the handles of all threads, so the tag has only the texts and a few small blocks.
    let least = bytes..bytes + 2000;
    assert!(least.contains(&amount("explicit/parent")), "{}", amount("explicit/parent"));
    drop(plain);
    let kept = std::thread::spawn(|| {
        Tag::new("explicit/kept").keep();
        let inner = tag("explicit/kept/inner");
        let inner = (text(10), drop(inner)).0;
        (text(1000), inner)
    });
    let kept = kept.join().unwrap();
    assert_eq!(amount("explicit/kept/inner"), malloc_size_of(&kept.1));
    let rest = amount("explicit/kept") - malloc_size_of(&kept.0);
    assert!(rest < 500, "{rest} bytes for the thread itself");
}

fn poll<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let poll = Pin::as_mut(&mut future).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(Tag::current(), Tag::NONE);
    match poll {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the future never waits"),
    }
}

static COUNTER: MemoryCounter = MemoryCounter::new();

struct Library;

impl CounterSite for Library {
    const COUNTER: &'static MemoryCounter = &COUNTER;
}

#[test]
fn a_counter_wins_over_a_tag() {
    let guard = tag("explicit/library");
    let block = CountingMalloc::<Library>::malloc(100);
    // SAFETY: the block is live, and these functions made it.
    let block = unsafe { CountingMalloc::<Library>::realloc(block, 10_000) };
    drop(guard);
    assert!(COUNTER.bytes() >= 10_000);
    assert_eq!(amount("explicit/library"), 0);
    // SAFETY: the block is live, and these functions made it.
    unsafe { CountingMalloc::<Library>::free(block) };
}

#[test]
fn a_process_has_tags_for_many_paths_and_says_when_it_has_no_more() {
    for i in 0..70_000 {
        let tag = Tag::new(format!("explicit/many/{i}"));
        assert_eq!(tag == Tag::NONE, i >= 65_534, "{i}");
    }
    let last = Tag::new("explicit/many/65533").run(|| text(100));
    let none = Tag::new("explicit/many/65534").run(|| text(100));
    let set = reports();
    let paths: Vec<&str> =
        set.iter().map(|r| r.path).filter(|path| path.starts_with("explicit/many/")).collect();
    assert_eq!(paths, ["explicit/many/65533"]);
    assert!(set.warnings().iter().any(|w| w.message.contains("65,534 paths")), "{:?}", set.warnings());
    drop((last, none));
}

#[test]
fn a_path_that_no_report_can_have_gives_a_warning_and_no_tag() {
    for (path, why) in [
        ("elsewhere/js", "a tag's path must be under `explicit/`"),
        ("explicit/", "the path ends with `/`"),
        ("explicit/heap-unclassified/js", "is the memory that no reporter claims"),
    ] {
        assert_eq!(Tag::new(path), Tag::NONE);
        let set = reports();
        let warned = set.warnings().iter().any(|w| w.message.contains(path) && w.message.contains(why));
        assert!(warned, "{path}: {:?}", set.warnings());
    }
    let set = reports();
    assert!(Forest::new(&set).amount("explicit").is_some());
}
