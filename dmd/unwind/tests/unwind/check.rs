//! Compares the walker's result for a stack with the result of the `backtrace` crate.

use dmd_unwind::{Caller, LastStack, Registers, StackRange, WalkEnd, capture_here};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;

const MOST: usize = 1024;

thread_local! {
    static CHECKED: Cell<usize> = const { Cell::new(0) };
    static FRAMES: Cell<usize> = const { Cell::new(0) };
}

/// The number of stacks that this thread has checked, and of their frames.
pub(crate) fn checked() -> (usize, usize) {
    (CHECKED.get(), FRAMES.get())
}

/// Compares the walks of the stack above this call. Panics if they differ.
#[inline(never)]
pub(crate) fn check() {
    check_here();
}

/// Compares the walks from the caller of this function outwards.
#[unsafe(naked)]
pub(crate) extern "C-unwind" fn check_here() {
    core::arch::naked_asm!("lea rdi, [rsp + 8]", "mov rsi, rbp", "jmp {}", sym check_from);
}

/// Continues [`check_here`], which jumps to this function. The arguments are the arguments of [`Caller::new`].
#[inline(never)]
extern "C-unwind" fn check_from(place: usize, fp: usize) {
    let caller = Caller::new(place, fp);
    let mut ours = [0; MOST];
    let (len, end) = capture_here(&mut ours);
    let mut theirs = Vec::with_capacity(MOST);
    backtrace::trace(|frame| {
        theirs.push(frame.ip().addr());
        theirs.len() < MOST
    });
    compare(&ours[..len], end, &theirs);
    REMEMBERING
        .with_borrow_mut(|remembering| remembering.get_or_insert_default().check(caller, &ours[..len]));
}

/// A walker that ends where the stack is unchanged since the last check, and all stacks that it has named. A name
/// consists of the caller's name and the innermost frame.
struct Remembering {
    range: StackRange,
    /// Boxed, because tests run on small stacks, and thread-locals take memory at the end of a stack.
    last: Box<LastStack<usize>>,
    names: Vec<(usize, usize)>,
}

thread_local! {
    static REMEMBERING: RefCell<Option<Remembering>> = const { RefCell::new(None) };
}

impl Default for Remembering {
    fn default() -> Self {
        Self { range: StackRange::new(), last: Box::new(LastStack::new(0)), names: vec![] }
    }
}

impl Remembering {
    /// `all` is the stack from `caller` outwards.
    #[inline(never)]
    fn check(&mut self, caller: Caller, all: &[usize]) {
        let Self { range, last, names } = self;
        let child = |caller, pc| {
            names.push((caller, pc));
            names.len()
        };
        let (mut name, _) = last.tag(&Registers::here(), range, Some(caller), 0, child);
        let mut frames = vec![];
        while let Some((caller, pc)) = name.checked_sub(1).and_then(|at| names.get(at)) {
            frames.push(*pc);
            name = *caller;
        }
        let expected = &all[..all.len().min(dmd_unwind::MOST)];
        assert!(
            frames == expected,
            "remembered:\n{}\nwhole:\n{}",
            self::names(&frames),
            self::names(expected)
        );
    }
}

/// `theirs` includes the frames of the comparison itself, and may end with a null frame.
pub(crate) fn compare(ours: &[usize], end: WalkEnd, theirs: &[usize]) {
    let first = *ours.first().expect("at least the caller");
    let Some(start) = theirs.iter().position(|&pc| pc == first) else {
        panic!("{} is not in\n{}", names(&[first]), names(theirs));
    };
    let theirs = &theirs[start..];
    let theirs = theirs.strip_suffix(&[0]).unwrap_or(theirs);
    assert!(ours == theirs, "ours, {end:?}:\n{}\ntheirs:\n{}", names(ours), names(theirs),);
    assert_eq!(end, WalkEnd::Complete, "{}", names(ours));
    CHECKED.set(CHECKED.get() + 1);
    FRAMES.set(FRAMES.get() + ours.len());
}

pub(crate) fn names(pcs: &[usize]) -> String {
    let mut text = String::new();
    for &pc in pcs.iter().take_while(|&&pc| pc != 0) {
        let mut name = None;
        backtrace::resolve((pc - 1) as *mut c_void, |symbol| {
            name = symbol.name().map(|name| name.to_string());
        });
        text += &format!("{pc:#x} {}\n", name.unwrap_or_default());
    }
    text
}
