//! `--mode=test` and `--mode=stress` test DMD in this process. Then the process ends.

use core::hint::black_box;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::engine::{ENGINE, MarkOptions, MarkOutcome};
use crate::options::{Mode, Run};
use crate::system::log::say_anyway;
use crate::system::slot::Inside;
use crate::tables::mark::PathId;
use crate::tables::stack::Caller;
use crate::tables::trace_id::TraceId;

/// The program's allocator, through the hook under test.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// Allocates a block of this many bytes.
    pub alloc: fn(usize) -> *mut u8,
    /// Frees a block of this many bytes.
    pub free: fn(*mut u8, usize),
}

/// Runs the test or the load that the options request and ends the process. Returns at once in a normal run.
pub fn run(allocator: Allocator) {
    let passed = match ENGINE.setup().options.run {
        Run::Normal => return,
        Run::Test => test(allocator),
        Run::Stress => stress(allocator),
    };
    // SAFETY: `_exit` ends the process, and the program's code has not run.
    unsafe { libc::_exit(if passed { 0 } else { 1 }) }
}

/// The numbers of live blocks of this size: all, with a stack, reported once, reported twice.
fn blocks_of(requested: usize) -> [usize; 4] {
    let _inside = Inside::deeper();
    let mut counts = [0; 4];
    ENGINE.table().for_each(|address, block| {
        if block.requested == requested {
            let reports = if block.marked { ENGINE.marks.get(address) } else { [None; 2] };
            counts[0] += 1;
            counts[1] += usize::from(block.trace != TraceId::NONE);
            counts[2] += usize::from(reports[0].is_some() && reports[1].is_none());
            counts[3] += usize::from(reports[1].is_some());
        }
    });
    counts
}

fn options(on_alloc: bool) -> MarkOptions {
    MarkOptions { on_alloc, ..MarkOptions::default() }
}

struct SelfTestChecks {
    passed: bool,
    number: usize,
}

impl SelfTestChecks {
    fn check(&mut self, what: &str, actual: [usize; 4], expected: [usize; 4]) {
        self.number += 1;
        if actual != expected {
            self.passed = false;
            say_anyway(format_args!(
                "test: {what}: blocks, with stack, reported once, twice: {actual:?}, expected {expected:?}"
            ));
        }
    }
}

/// A size that no other code requests.
const ODD: usize = 71_237;

fn test(Allocator { alloc, free }: Allocator) -> bool {
    let mut checks = SelfTestChecks { passed: true, number: 0 };
    let marking = ENGINE.setup().options.mode == Mode::DarkMatter;
    let once = usize::from(marking);
    checks.check("nothing yet", blocks_of(ODD), [0; 4]);

    let mut ten = [null_mut(); 10];
    ten.iter_mut().for_each(|block| *block = black_box(alloc(ODD)));
    free(ten[3], ODD);
    // A block this large has a stack with any options.
    checks.check("ten blocks, one freed", blocks_of(ODD), [9, 9, 0, 0]);

    let path = PathId::NONE;
    let report = |block: *mut u8, on_alloc| {
        _ = ENGINE.report(block.addr(), path, options(on_alloc), Caller::new(0, 0));
    };
    report(ten[0], false);
    checks.check("reported", blocks_of(ODD), [9, 9, once, 0]);
    (0..3).for_each(|_| report(ten[0], false));
    checks.check("reported four times", blocks_of(ODD), [9, 9, 0, once]);
    report(ten[1], true);
    ENGINE.clear_reports();
    checks.check("cleared, except marks made at allocation", blocks_of(ODD), [9, 9, once, 0]);
    report(null_mut(), false);
    let inside = MarkOptions { enclosing: true, ..MarkOptions::default() };
    let middle = ENGINE.report(ten[2].addr() + 100, path, inside, Caller::new(0, 0));
    checks.check("an enclosing block", blocks_of(ODD), [9, 9, 2 * once, 0]);
    checks.check(
        "its size",
        [usize::from(matches!(middle, MarkOutcome::Block(ODD..))), 0, 0, 0],
        [1, 0, 0, 0],
    );
    for (at, block) in ten.into_iter().enumerate() {
        if at != 3 {
            free(block, ODD);
        }
    }
    checks.check("all freed", blocks_of(ODD), [0; 4]);
    say_anyway(format_args!(
        "test: {} checks, {}",
        checks.number,
        if checks.passed { "all passed" } else { "some failed" }
    ));
    checks.passed
}

const THREADS: u64 = 4;
const ROUNDS: u64 = 300_000;
const KEPT: usize = 64;

fn stress(allocator: Allocator) -> bool {
    let live = AtomicU64::new(0);
    let passed = thread::scope(|scope| {
        for seed in 0..THREADS {
            let live = &live;
            scope.spawn(move || load(allocator, seed, live));
        }
        scope.spawn(|| (0..20).for_each(|_| ENGINE.clear_reports()));
        true
    });
    let left = blocks_of(ODD)[0] as u64;
    let kept = live.load(Ordering::Relaxed);
    say_anyway(format_args!(
        "stress: {} allocations by {THREADS} threads, {left} of {kept} live blocks found, {} dropped, {} stack nodes",
        THREADS * ROUNDS,
        ENGINE.dropped(),
        ENGINE.tree().nodes()
    ));
    passed && left == kept
}

fn load(Allocator { alloc, free }: Allocator, seed: u64, live: &AtomicU64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut blocks = [(null_mut::<u8>(), 0); KEPT];
    for _ in 0..ROUNDS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (block, bytes) = &mut blocks[state as usize % KEPT];
        if !block.is_null() {
            free(*block, *bytes);
        }
        *bytes = 1 + (state >> 32) as usize % 3000;
        *block = deeper(alloc, *bytes, (state >> 20) as usize % 30);
        if state & 15 == 0 {
            ENGINE.report(block.addr(), PathId::NONE, options(state & 31 == 0), Caller::new(0, 0));
        }
    }
    for (block, bytes) in blocks {
        if !block.is_null() {
            free(block, bytes);
        }
    }
    // These blocks are never freed.
    for _ in 0..100 {
        black_box(alloc(ODD));
        live.fetch_add(1, Ordering::Relaxed);
    }
}

#[inline(never)]
fn deeper(alloc: fn(usize) -> *mut u8, bytes: usize, depth: usize) -> *mut u8 {
    if depth == 0 { alloc(bytes) } else { black_box(deeper(alloc, bytes, depth - 1)) }
}
