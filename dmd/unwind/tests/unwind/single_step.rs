//! Runs a program instruction by instruction. The trap's handler walks the stack at each instruction: in prologues and
//! epilogues, in .plt entries, in the loader's resolver, in malloc.

use crate::c_library::{FUNCTIONS, Library, SHAPES, build};
use crate::random_stacks::{Script, descend, next};
use crate::signals::{TRAP, install};
use dmd_unwind::{WalkEnd, capture_here};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

const MOST: usize = 128;

/// In the epilogues of functions that realign their stack, gcc's unwind information is wrong. libgcc's unwinder
/// crashes there; dmd's walker must not crash.
const REALIGNED: [c_int; 2] = [5, 6];

/// The stacks that differ. The handler writes this value; the test reads it after the program has run.
struct Difference(UnsafeCell<([usize; MOST], [usize; MOST])>);

// SAFETY: only the stepped thread writes it, and the test reads it after that thread has ended.
unsafe impl Sync for Difference {}

static DIFFERENCE: Difference = Difference(UnsafeCell::new(([0; MOST], [0; MOST])));
static STEPPING: AtomicBool = AtomicBool::new(false);
/// Whether only dmd's walker walks the stack, without libgcc's unwinder.
static ALONE: AtomicBool = AtomicBool::new(false);
static STEPS: AtomicUsize = AtomicUsize::new(0);
static COMPLETE: AtomicUsize = AtomicUsize::new(0);
static DIFFERENT: AtomicUsize = AtomicUsize::new(0);

/// Handles each step. It must not allocate or wait for a lock: it may interrupt malloc.
extern "C" fn step(_: c_int, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel passes a valid context to the handler, and no other code uses the context.
    let flags = unsafe { &mut (*context).uc_mcontext.gregs[libc::REG_EFL as usize] };
    if STEPPING.load(Relaxed) {
        *flags |= 0x100;
    } else {
        *flags &= !0x100;
    }
    let mut ours = [0; MOST];
    let (len, end) = capture_here(&mut ours);
    STEPS.fetch_add(1, Relaxed);
    COMPLETE.fetch_add(usize::from(end == WalkEnd::Complete), Relaxed);
    if ALONE.load(Relaxed) {
        return;
    }
    let mut theirs = [0; MOST + 8];
    let mut their_len = 0;
    // SAFETY: no other thread may use the `backtrace` crate during the call. The crate only calls libgcc, whose shared
    // state needs no lock of this crate.
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            theirs[their_len] = frame.ip().addr();
            their_len += 1;
            their_len < theirs.len()
        });
    }
    let skipped = theirs[..their_len].iter().position(|&pc| pc == ours[0]).unwrap_or(their_len);
    let mut theirs = &theirs[skipped..their_len.min(skipped + MOST)];
    if let Some(rest) = theirs.strip_suffix(&[0]) {
        theirs = rest;
    }
    if ours[..len] != *theirs && DIFFERENT.fetch_add(1, Relaxed) == 0 {
        // SAFETY: only one thread is stepped, and its handler does not interrupt itself, so there is no other borrow.
        let difference = unsafe { &mut *DIFFERENCE.0.get() };
        difference.0 = ours;
        difference.1[..theirs.len()].copy_from_slice(theirs);
    }
}

/// Starts or ends single steps. (Code that sets the flag directly would move the stack pointer, and the unwind
/// information would not contain the move.)
fn stepping(on: bool) {
    STEPPING.store(on, Relaxed);
    // SAFETY: the trap has a handler, and the program continues after `int3` when the handler returns.
    unsafe { std::arch::asm!("int3") };
}

fn nothing() {}

fn walk() {
    let (len, end) = capture_here(&mut [0; 64]);
    assert!(len > 5);
    assert_eq!(end, WalkEnd::Complete);
}

#[test]
fn at_every_instruction() {
    let _trap = TRAP.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let calls_out = "
        #include <stdlib.h>
        #include <string.h>
        long calls(const char *text) {
          char *copy = strdup(text);
          long value = strtol(copy, 0, 10) + atoi(copy);
          qsort(copy, strlen(copy), 1, (int (*)(const void *, const void *))strcmp);
          free(copy);
          return value;
        }";
    let lazy = Library::open(&build(folder.path(), "lazy", calls_out, &["-O2", "-Wl,-z,lazy", "-fplt"]));
    // SAFETY: the source above defines `calls` with this type.
    let calls: extern "C" fn(*const i8) -> c_long = unsafe { std::mem::transmute(lazy.symbol("calls")) };
    let shapes: Vec<Library> =
        [("step_fast", "-fomit-frame-pointer"), ("step_with", "-fno-omit-frame-pointer")]
            .iter()
            .map(|(name, option)| Library::open(&build(folder.path(), name, FUNCTIONS, &["-O2", option])))
            .collect();
    let own = Library::open(&build(folder.path(), "step_own", FUNCTIONS, &["-O1"])).pass();
    let passes: Vec<_> = shapes.iter().map(|library| library.pass()).collect();
    std::thread::Builder::new()
        .stack_size(16 << 20)
        .spawn(move || {
            install(libc::SIGTRAP, step as *const (), libc::SA_SIGINFO);
            stepping(true);
            let value = calls(c"321".as_ptr());
            for pass in &passes {
                for shape in 0..SHAPES {
                    ALONE.store(REALIGNED.contains(&shape), Relaxed);
                    let mut script = Script::new(1, 0, &[], nothing);
                    pass(shape, next, (&raw mut script).cast());
                }
            }
            // Interrupt dmd's walker itself at every instruction, and walk through code that is new to it.
            let mut script = Script::new(1, 0, &[], walk);
            own(0, next, (&raw mut script).cast());
            for seed in 0..2 {
                descend(&mut Script::new(seed, 3, &[], nothing));
            }
            let text = format!("{value} {:?}", std::env::var_os("HOME"));
            stepping(false);
            assert!(text.starts_with("642"), "{text}");
        })
        .unwrap()
        .join()
        .unwrap();
    let (steps, different) = (STEPS.load(Relaxed), DIFFERENT.load(Relaxed));
    let complete = COMPLETE.load(Relaxed);
    // SAFETY: the stepped thread has ended, so no thread writes any more.
    let (ours, theirs) = unsafe { &*DIFFERENCE.0.get() };
    assert_eq!(
        different,
        0,
        "of {steps} steps, {complete} complete\nours:\n{}theirs:\n{}",
        crate::check::names(ours),
        crate::check::names(theirs)
    );
    assert!(steps > 10_000, "{steps}");
    // A few walks may be incomplete: in epilogues of functions that realign their stack, and in the program's .plt
    // entries, for which lld writes no unwind information.
    assert!(complete > steps - steps / 500, "{complete} of {steps}");
}
