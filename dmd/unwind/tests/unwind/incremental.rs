//! The walk that reuses the last walk. (`check` also tests it on the stacks of all other tests.)

use crate::check::{check, checked};
use dmd_unwind::{LastStack, Registers, StackRange, WalkEnd};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Functions with frames of the same size. The digits of `path` decide which function calls which. So new frames take
/// the place of old frames, with the same inner callers and different outer callers.
macro_rules! functions {
    ($($name:ident $salt:literal),*) => {
        $(
            #[inline(never)]
            fn $name(path: u64, depth: u32) -> u64 {
                let mut local = [path ^ $salt; 4];
                black_box(&mut local);
                let mut sum = 0;
                if depth > 0 {
                    sum ^= NEXT[path as usize & 3](path.rotate_right(2), depth - 1);
                    // Skip this call for some paths: then the next call may be of the same function, and only this
                    // frame has changed.
                    if path & 4 == 0 {
                        check();
                    }
                    sum ^= NEXT[(path >> 9) as usize & 3](path.rotate_right(5), depth - 1);
                    if path & 0x30 == 0 {
                        sum ^= u64::from(catch_unwind(AssertUnwindSafe(|| thrown(path, depth - 1))).is_err());
                    }
                }
                check();
                black_box(&mut local);
                sum ^ local[3]
            }
        )*
        static NEXT: [fn(u64, u32) -> u64; 4] = [$($name),*];
    };
}
functions!(north 1, east 2, south 3, west 4);

#[inline(never)]
fn thrown(path: u64, depth: u32) {
    black_box(NEXT[path as usize & 3](path.rotate_right(3), depth));
    resume_unwind(Box::new(()));
}

#[test]
fn frames_that_come_and_go_in_the_place_of_others() {
    let mut path = 0xd6e8_feb8_6659_fd93_u64;
    for round in 0..12 {
        path = path.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(round);
        black_box(NEXT[path as usize & 3](path, 6));
    }
    assert!(checked().0 > 2000, "{:?}", checked());
}

#[test]
fn frames_deeper_than_are_kept() {
    #[inline(never)]
    fn down(left: u32) -> u32 {
        if left.is_multiple_of(29) {
            check();
        }
        let deeper = if left == 0 { 0 } else { down(left - 1) };
        if left.is_multiple_of(31) {
            check();
        }
        black_box(deeper) + 1
    }
    assert_eq!(down(400), 401);
    assert_eq!(down(100), 101);
}

/// A walk that reaches a frame of the last walk must make no new tag, and the next walk may end at any frame.
#[test]
fn an_unchanged_stack_keeps_its_tags() {
    // A tag is the number of frames, counted from the outermost frame.
    let mut last = Box::new(LastStack::new(0));
    let mut range = StackRange::new();
    let mut walk = || {
        let mut made = 0;
        let child = |caller, _| {
            made += 1;
            caller + 1
        };
        let (frames, end) = last.tag(&Registers::here(), &mut range, None, 0, child);
        (frames, made, end, last.trusted())
    };
    let mut walks = vec![];
    for _ in 0..3 {
        walks.push(walk());
    }
    let (frames, ..) = walks[0];
    assert!(frames > 5, "{frames}");
    assert_eq!(walks[0].1, frames);
    assert_eq!(walks[2], (frames, 0, WalkEnd::Complete, frames));
}
