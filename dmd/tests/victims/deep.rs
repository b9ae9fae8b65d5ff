//! Blocks with all kinds of stacks: generic functions, closures, recursion, other threads, stacks that are deeper than
//! a dump keeps, and stacks that continue on another stack. Each kind of block has its own size. Usage: `deep FILE`.
//! The program writes a dump.

use std::alloc::System;
use std::collections::BTreeMap;
use std::hint::black_box;

use dmd::{Dmd, Mode, Options, Stacks};

#[global_allocator]
static ALLOCATOR: Dmd<System> =
    Dmd::switched_on(System, Options::new().mode(Mode::Live).stacks(Stacks::Full).quiet(true));

fn keep(bytes: usize) {
    black_box(Vec::<u8>::with_capacity(bytes).leak());
    black_box(Box::leak(vec![1_u8; bytes + 1].into_boxed_slice()));
}

#[inline(never)]
fn generic<T: Default + Clone>(elements: usize) {
    black_box(vec![T::default(); elements].leak());
}

#[inline(never)]
fn recursive(depth: usize, bytes: usize) {
    if depth == 0 {
        keep(bytes);
    } else {
        recursive(depth - 1, bytes);
    }
    // Without this use of `depth` after the call, the compiler may turn the recursion into a loop.
    black_box(depth);
}

struct Dropped(usize);

impl Drop for Dropped {
    fn drop(&mut self) {
        keep(self.0);
    }
}

fn map(bytes: usize) -> *mut libc::c_void {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: fresh pages at any address overwrite no memory.
    unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) }
}

/// Allocates on the second of two more stacks: the first stack is below the stack of `main`, and the second stack is
/// above the first. The kernel maps new pages below older pages, or into the highest hole that is large enough.
#[inline(never)]
fn on_other_stacks() {
    const PART: usize = 16 << 20;
    let hole = map(4 * PART);
    stacker::grow(2 * PART, || {
        let lower = 0_u8;
        // SAFETY: the pages were mapped above, and no code uses them.
        assert_eq!(unsafe { libc::munmap(hole, 4 * PART) }, 0);
        stacker::grow(3 * PART, || {
            let upper = 0_u8;
            keep(95_001);
            let (lower, upper) = (black_box(&raw const lower), black_box(&raw const upper));
            assert!(lower < upper, "the stacks are in the wrong order: {lower:?} {upper:?}");
        });
    });
}

fn main() {
    let file = std::env::args_os().nth(1).expect("a file");
    keep(10_001);
    generic::<u64>(2_501);
    generic::<[u16; 3]>(2_511);
    (0..3).map(|n| move || keep(30_001 + 10 * n)).for_each(|closure| closure());
    recursive(20, 40_001);
    recursive(400, 50_001);
    drop(Dropped(60_001));
    let mut grows = Vec::<u8>::with_capacity(70_001);
    grows.reserve_exact(71_001);
    black_box(grows.leak());
    let sorted: BTreeMap<usize, [u8; 600]> = (0..40).map(|n| (n, [1; 600])).collect();
    black_box(Box::leak(Box::new(sorted)));
    on_other_stacks();
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(|| {
        keep(80_001);
        recursive(50, 90_001);
    });
    thread.expect("a thread").join().expect("no panic");
    dmd::dump(file).expect("recording");
}
