//! With DMD, failures show the stacks of the scope, and of no other code.

use std::alloc::System;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dmd::{Dmd, Mode, Options, Stacks};
use memory_heap_test::{Scope, assert_heap};

memory_heap_test::global_allocator!(Dmd<System>: Dmd::switched_on(
    System,
    Options::new().mode(Mode::Live).stacks(Stacks::Full).quiet(true)
));

#[inline(never)]
fn parse_header() -> Vec<u8> {
    black_box(Vec::with_capacity(1000))
}

#[inline(never)]
fn parse_body() {
    for _ in 0..3 {
        drop(black_box(Vec::<u8>::with_capacity(5000)));
    }
}

#[inline(never)]
fn other_code() -> Vec<u8> {
    black_box(Vec::with_capacity(7000))
}

fn failure(code: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(code)).expect_err("the assertion fails");
    panic.downcast_ref::<String>().expect("a text").clone()
}

#[test]
fn a_failure_has_the_stacks_that_made_the_difference() {
    let before = other_code();
    let (kept, scope) = Scope::measure(|| {
        parse_body();
        parse_header()
    });
    let other = other_code();
    let message = failure(|| assert_heap!(scope, allocs == 1));
    let (body, header) = (message.find("with_dmd::parse_body"), message.find("with_dmd::parse_header"));
    assert!(message.contains("allocations of the scope, by stack:\n  3 blocks, 15,000 bytes\n"), "{message}");
    assert!(body.is_some() && body < header, "{message}");
    assert!(!message.contains("other_code"), "{message}");
    let message = failure(|| assert_heap!(scope, retained == 0));
    assert!(message.contains("live blocks of the scope, now, by stack:\n  1 block, "), "{message}");
    assert!(message.contains("parse_header") && !message.contains("parse_body"), "{message}");
    drop((kept, before, other));
}
