//! 1,000 blocks of 100 bytes from the wrapper of an allocator, and 500 blocks from C's `malloc`. Usage, with `DMD`,
//! and with or without `LD_PRELOAD`: `hooks_* FILE`. The dump counts the wrapper's blocks once; only `libdmd.so`
//! records C's blocks. The wrapper looks for `libdmd.so` at the start, and must not leave an error of the loader.

use std::alloc::{Layout, alloc};
use std::hint::black_box;

pub(crate) fn run() {
    // SAFETY: the function has no precondition.
    assert!(unsafe { libc::dlerror() }.is_null());
    let file = std::env::args_os().nth(1).expect("a file");
    let layout = Layout::from_size_align(100, 8).expect("small");
    for _ in 0..1000 {
        // SAFETY: the size of the layout is 100, not 0.
        black_box(unsafe { alloc(layout) });
    }
    for _ in 0..500 {
        // SAFETY: the function has no precondition.
        black_box(unsafe { libc::malloc(201) });
    }
    // The block is freed before the dump, so the dump does not contain it.
    drop(black_box(vec![0u8; 100]));
    dmd::dump(file).expect("recording");
}
