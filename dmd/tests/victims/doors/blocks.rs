//! 1,000 blocks of 100 bytes by the wrapper of whichever allocator, and 500 by C's `malloc`. Usage: with
//! `DMD`, and with or without `LD_PRELOAD`: `doors_* FILE`. The wrapper's blocks are counted once; C's are
//! only seen by `libdmd.so`. The loader, which is asked for that one, has no error to tell at the start.

use std::alloc::{Layout, alloc};
use std::hint::black_box;

pub(crate) fn run() {
    // SAFETY: no precondition.
    assert!(unsafe { libc::dlerror() }.is_null());
    let file = std::env::args_os().nth(1).expect("a file");
    let layout = Layout::from_size_align(100, 8).expect("small");
    for _ in 0..1000 {
        // SAFETY: the size is not 0.
        black_box(unsafe { alloc(layout) });
    }
    for _ in 0..500 {
        // SAFETY: no precondition.
        black_box(unsafe { libc::malloc(201) });
    }
    // Comes and goes: not in the dump.
    drop(black_box(vec![0u8; 100]));
    dmd::dump(file).expect("recording");
}
