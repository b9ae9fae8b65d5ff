//! `assert_no_leaks!`, in a process without other tests: the blocks of their threads would count, too.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use dmd::{Dmd, Mode, Options, Stacks};

#[global_allocator]
static ALLOCATOR: Dmd<System> =
    Dmd::switched_on(System, Options::new().mode(Mode::Live).stacks(Stacks::Full).quiet(true));

#[inline(never)]
fn lose(bytes: usize) {
    std::hint::black_box(vec![1_u8; bytes].leak());
}

/// Returns the message of the panic; `None` if there was no panic.
fn message(run: impl FnOnce()) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
    panic.downcast::<String>().ok().map(|message| *message)
}

#[test]
fn what_is_left_is_named() {
    // Wait until the thread that started this test has recorded the start time: that allocates a block.
    std::thread::sleep(Duration::from_millis(200));
    std::panic::set_hook(Box::new(|_| ()));
    // The result is dropped, and the values that the closure owns are dropped, too.
    let owned = vec![String::from("a"); 100];
    let freed = message(|| {
        dmd::assert_no_leaks!(move || owned.iter().map(|text| text.to_uppercase()).collect::<Vec<_>>());
    });
    // Blocks that the library allocates only once are not leaks.
    let printed = message(|| {
        dmd::assert_no_leaks!(|| print!(""));
    });
    let lost = message(|| {
        dmd::assert_no_leaks!(|| {
            for _ in 0..3 {
                lose(1000);
            }
        });
    });
    let _ = std::panic::take_hook();
    assert_eq!(freed, None);
    assert_eq!(printed, None);
    let lost = lost.unwrap();
    assert!(lost.starts_with("the closure leaks memory\n\nLeaked: 2.93 KiB in 3 blocks."), "{lost}");
    assert!(lost.contains("lose") && lost.contains("1000 B x 3"), "{lost}");
}
