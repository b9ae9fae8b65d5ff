//! Stacks of random frames: generic and recursive Rust functions, closures, trait objects,
//! sorts and searches of Rust and of C with callbacks, and C functions of all shapes.

use crate::c_library::{Pass, SHAPES, variants};
use crate::check::{check, checked};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_long, c_void};
use std::hint::black_box;

pub(crate) struct Script {
    state: u64,
    left: u32,
    passes: Vec<Pass>,
    /// Called at the innermost frame.
    at_end: fn(),
}

impl Script {
    pub(crate) fn new(seed: u64, depth: u32, passes: &[Pass], at_end: fn()) -> Script {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Script { state, left: depth, passes: passes.to_vec(), at_end }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 20) % below
    }
}

trait Shape {
    fn go(&self, script: &mut Script) -> u64;
}

struct Heavy<const N: usize>;

impl<const N: usize> Shape for Heavy<N> {
    #[inline(never)]
    fn go(&self, script: &mut Script) -> u64 {
        let local = black_box([1u8; N]);
        let inner = descend(script);
        inner + u64::from(local[N / 2])
    }
}

thread_local! {
    static SCRIPT: RefCell<Option<*mut Script>> = const { RefCell::new(None) };
}

pub(crate) extern "C-unwind" fn next(script: *mut c_void) -> c_long {
    // SAFETY: every caller passes a pointer to a script that it borrows exclusively.
    let script = unsafe { &mut *script.cast::<Script>() };
    descend(script) as c_long
}

/// Called by qsort and bsearch, which pass no argument on. It descends once, in the first comparison.
unsafe extern "C" fn comparison(left: *const c_void, right: *const c_void) -> c_int {
    if let Some(script) = SCRIPT.take() {
        black_box(next(script.cast()));
    }
    // SAFETY: `qsort` and `bsearch` pass pointers to elements, and the elements here are `u32`.
    let left = unsafe { *left.cast::<u32>() };
    // SAFETY: as above.
    let right = unsafe { *right.cast::<u32>() };
    left.cmp(&right) as c_int
}

#[inline(never)]
fn generic<T: Copy + Into<u64>, const N: usize>(value: T, script: &mut Script) -> u64 {
    let values = black_box([value; N]);
    let inner = descend(script);
    values.iter().map(|&value| value.into()).sum::<u64>() + inner
}

#[inline(never)]
fn recursive(depth: u64, script: &mut Script) -> u64 {
    if depth == 0 { descend(script) } else { black_box(recursive(depth - 1, script)) + 1 }
}

#[inline(never)]
pub(crate) fn descend(script: &mut Script) -> u64 {
    if script.left == 0 {
        (script.at_end)();
        return black_box(1);
    }
    script.left -= 1;
    let inner = match script.draw(16) {
        0 => generic::<u8, 3>(1, script),
        1 => generic::<u64, 500>(1, script),
        2 => generic::<u16, 3000>(1, script),
        3 => recursive(script.draw(5), script),
        4 => {
            let shapes: [&dyn Shape; 3] = [&Heavy::<1>, &Heavy::<100>, &Heavy::<40_000>];
            let index = script.draw(3) as usize;
            shapes[index].go(script)
        }
        5 => {
            let mut results: Vec<u64> = (0..1).collect();
            results.iter_mut().for_each(|result| *result = descend(script));
            results[0]
        }
        6 => {
            let mut first = true;
            let mut inner = 0;
            let mut values: Vec<u64> = (0..script.draw(60) + 2).map(|i| i * 7919 % 61).collect();
            values.sort_by(|left, right| {
                if std::mem::take(&mut first) {
                    inner = descend(script);
                }
                left.cmp(right)
            });
            inner
        }
        7 => std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| descend(script))).unwrap(),
        8 => {
            let boxed: Box<dyn FnOnce(&mut Script) -> u64> = Box::new(|script| descend(script) + 1);
            boxed(script)
        }
        9 => {
            let mut map = BTreeMap::new();
            *map.entry(1).or_insert_with(|| descend(script))
        }
        10 => {
            let mut values: Vec<u32> = (0..script.draw(300) as u32 + 2).rev().collect();
            SCRIPT.set(Some(script));
            // SAFETY: the array has this number of elements of this size.
            unsafe { libc::qsort(values.as_mut_ptr().cast(), values.len(), 4, Some(comparison)) };
            1
        }
        11 => {
            let values: Vec<u32> = (0..50).collect();
            SCRIPT.set(Some(script));
            let key = 17u32;
            // SAFETY: the array has this number of elements of this size.
            let found = unsafe {
                libc::bsearch(
                    (&raw const key).cast(),
                    values.as_ptr().cast(),
                    values.len(),
                    4,
                    Some(comparison),
                )
            };
            u64::from(!found.is_null())
        }
        _ if script.passes.is_empty() => descend(script),
        _ => {
            let index = script.draw(script.passes.len() as u64) as usize;
            let shape = script.draw(SHAPES as u64) as c_int;
            let pass = script.passes[index];
            pass(shape, next, std::ptr::from_mut(script).cast()) as u64
        }
    };
    black_box(inner) + 1
}

#[test]
fn random_stacks_are_walked_as_by_the_backtrace_crate() {
    let wanted: usize = if std::env::var_os("THOROUGH").is_some() { 3000 } else { 900 };
    let folder = tempfile::tempdir().unwrap();
    let libraries = variants(folder.path());
    let passes: Vec<Pass> = libraries.iter().map(|library| library.pass()).collect();
    // Runs on a separate thread with a large stack, since the frames are large.
    std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || {
            for seed in 0..wanted as u64 {
                let depth = 1 + (seed % 60) as u32;
                descend(&mut Script::new(seed, depth, &passes, check));
            }
            let (stacks, frames) = checked();
            assert_eq!(stacks, wanted);
            assert!(frames > wanted * 30, "{frames} frames");
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn every_shape_of_c_function_in_every_variant() {
    let folder = tempfile::tempdir().unwrap();
    for library in variants(folder.path()) {
        for shape in 0..SHAPES {
            let mut script = Script::new(7, 0, &[], check);
            library.pass()(shape, next, (&raw mut script).cast());
            // The second walk takes the rules from the cache.
            library.pass()(shape, next, (&raw mut script).cast());
        }
    }
    assert_eq!(checked().0, 2 * 6 * SHAPES as usize);
}
