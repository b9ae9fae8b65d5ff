//! Firefox's `SmokeDMD` for DMD's engine: a fixed series of allocations and reports, and a dump after each part. The
//! comments describe the blocks in the dump with full stacks.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::ptr::null;

use dmd::__private::reset;

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).expect("small")
}

#[inline(never)]
fn new(bytes: usize) -> *mut u8 {
    // SAFETY: every caller passes a size that is not 0.
    black_box(unsafe { alloc(layout(bytes)) })
}

#[inline(never)]
fn free(block: *mut u8, bytes: usize) {
    // SAFETY: every caller passes a block that `new` made with this size, and frees it once.
    unsafe { dealloc(black_box(block), layout(bytes)) }
}

#[inline(never)]
fn six_blocks() -> [*mut u8; 6] {
    let mut blocks = [null::<u8>().cast_mut(); 6];
    for (at, block) in blocks.iter_mut().enumerate() {
        *block = new(128 - 16 * at);
    }
    blocks
}

/// Call this before recording starts again: the path is itself a block.
fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

fn dump(file: &Path) {
    dmd::dump(file).expect("recording");
}

fn start(options: &str) {
    // SAFETY: this program has no other thread.
    unsafe { reset(options) }.expect("options");
}

/// Runs all parts. Each part writes its dumps to files in a folder.
pub(crate) fn run(folder: &Path) {
    for mode in ["live", "dark-matter", "cumulative"] {
        let empty = file(folder, &format!("empty-{mode}"));
        start(&format!("--mode={mode} --stacks=full"));
        dump(&empty);
    }
    for mode in ["dark-matter", "live", "cumulative"] {
        full(folder, mode);
    }
    partial(folder);
    sample_below(folder);
    scan(folder);
    // The start forgets all earlier blocks, so freeing one of them has no effect.
    start("--mode=live --stacks=full");
}

#[allow(clippy::needless_range_loop, reason = "as it was written for Firefox")]
fn full(folder: &Path, mode: &str) {
    let first = file(folder, &format!("full1-{mode}"));
    let second = file(folder, &format!("full2-{mode}"));
    start(&format!("--mode={mode} --stacks=full"));

    // Nine blocks of 100 bytes, unreported. All must have the same stack, so the compiler must not unroll the loop.
    let mut a = [null::<u8>().cast_mut(); 10];
    for at in (0..10).map(black_box) {
        a[at] = new(100);
        if at == 3 {
            free(a[at], 100);
        }
    }
    // Reported in both analyses: once-reported in both.
    let b = new(90);
    dmd::report(b);
    // Reported on allocation: once-reported in both.
    let c = new(60);
    dmd::report_on_alloc(c);
    // Reported four times: twice-reported, then unreported.
    let d = new(77);
    for _ in 0..4 {
        dmd::report(d);
    }
    // These pointers are not blocks, so the calls have no effect.
    dmd::report(null::<u8>());
    let here = 7u64;
    dmd::report(black_box(&raw const here));
    // Grows: one block of 4,000 bytes.
    // SAFETY: `new` made the block with this layout, and the new size is not 0.
    let e = unsafe { realloc(new(40), layout(40), 4000) };
    // Shrinks: one block of 20 bytes.
    // SAFETY: `new` made the block with this layout, and the new size is not 0.
    let f = unsafe { realloc(new(2000), layout(2000), 20) };
    // Reported on allocation and freed: no block.
    let g = new(555);
    dmd::report_on_alloc(g);
    free(g, 555);
    // One report of each kind, in both orders: twice-reported, then once-reported.
    let h = new(256);
    dmd::report(h);
    dmd::report_on_alloc(h);
    let i = new(257);
    dmd::report_on_alloc(i);
    dmd::report(i);
    // The same function called at two places: equal blocks with different callers.
    let j = six_blocks();
    let k = six_blocks();
    // A hundred blocks that only cumulative mode keeps.
    for _ in 0..100 {
        free(new(1023), 1023);
    }

    dump(&first);
    dmd::report(b);
    dump(&second);

    for (block, bytes) in [(b, 90), (c, 60), (d, 77), (e, 4000), (f, 20), (h, 256), (i, 257)] {
        free(block, bytes);
    }
    for (at, block) in a.into_iter().enumerate() {
        if at != 3 {
            free(block, 100);
        }
    }
    for (at, (one, other)) in j.into_iter().zip(k).enumerate() {
        free(one, 128 - 16 * at);
        free(other, 128 - 16 * at);
    }
}

/// 10,000 blocks each of 16, 128 and 1,024 bytes. Fixed seeds determine which blocks have stacks.
fn partial(folder: &Path) {
    let file = file(folder, "partial");
    start("--mode=live");
    for bytes in [16, 128, 1024] {
        for _ in 0..10_000 {
            black_box(new(bytes));
        }
    }
    dump(&file);
}

/// With a limit of 1,009 bytes: DMD records each larger block, and samples smaller blocks by the sum of their sizes.
fn sample_below(folder: &Path) {
    let file = file(folder, "sample-below");
    start("--mode=live --sample-below=1009");
    for _ in 0..1000 {
        black_box(new(100));
    }
    for _ in 0..5 {
        black_box(new(2000));
    }
    dump(&file);
}

/// One block of six words: a small number, null, the address one byte before the block, its start, an address inside,
/// and null.
fn scan(folder: &Path) {
    let file = file(folder, "scan");
    start("--mode=scan");
    let block = new(48).cast::<usize>();
    for (at, word) in [123, 0, block.addr() - 1, block.addr(), block.addr() + 1, 0].into_iter().enumerate() {
        // SAFETY: the block has room for the six words.
        unsafe { block.wrapping_add(at).write(word) };
    }
    dump(&file);
    free(block.cast(), 48);
}
