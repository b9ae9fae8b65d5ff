//! A program run instruction by instruction: the trap's handler walks the stack at each one, in prologues
//! and epilogues, in .plt entries, in the loader's resolver, in malloc.

use crate::c_library::{FUNCTIONS, Library, SHAPES, build};
use crate::random_stacks::{Script, descend, next};
use crate::signals::{TRAP, install};
use dmd_unwind::{End, capture_here};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

const MOST: usize = 128;

/// In the epilogues of functions that realign their stack gcc's unwind information is wrong, and libgcc's
/// unwinder crashes. Ours must not.
const REALIGNED: [c_int; 2] = [5, 6];

/// Filled by the handler, read when the program has run.
struct Difference(UnsafeCell<([usize; MOST], [usize; MOST])>);

// SAFETY: only the one thread that is stepped touches it.
unsafe impl Sync for Difference {}

static DIFFERENCE: Difference = Difference(UnsafeCell::new(([0; MOST], [0; MOST])));
static STEPPING: AtomicBool = AtomicBool::new(false);
/// Is the stack not shown to libgcc?
static ALONE: AtomicBool = AtomicBool::new(false);
static STEPS: AtomicUsize = AtomicUsize::new(0);
static COMPLETE: AtomicUsize = AtomicUsize::new(0);
static DIFFERENT: AtomicUsize = AtomicUsize::new(0);

/// Allocates nothing and waits for nothing: it may be in the middle of malloc.
extern "C" fn step(_: c_int, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel gives the handler its context.
    let flags = unsafe { &mut (*context).uc_mcontext.gregs[libc::REG_EFL as usize] };
    if STEPPING.load(Relaxed) {
        *flags |= 0x100;
    } else {
        *flags &= !0x100;
    }
    let mut ours = [0; MOST];
    let (len, end) = capture_here(&mut ours);
    STEPS.fetch_add(1, Relaxed);
    COMPLETE.fetch_add(usize::from(end == End::Complete), Relaxed);
    if ALONE.load(Relaxed) {
        return;
    }
    let mut theirs = [0; MOST + 8];
    let mut their_len = 0;
    // SAFETY: the frames are used on this thread only; what it shares with other threads is libgcc's, and
    // without locks.
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
        // SAFETY: one thread is stepped, and its handler is not interrupted by itself.
        let difference = unsafe { &mut *DIFFERENCE.0.get() };
        difference.0 = ours;
        difference.1[..theirs.len()].copy_from_slice(theirs);
    }
}

/// Goes on by single steps, or no more. (Setting the flag by code would move the stack pointer, which the
/// unwind information would not tell.)
fn stepping(on: bool) {
    STEPPING.store(on, Relaxed);
    // SAFETY: the trap's handler goes on behind the instruction.
    unsafe { std::arch::asm!("int3") };
}

fn nothing() {}

fn walk() {
    let (len, end) = capture_here(&mut [0; 64]);
    assert!(len > 5);
    assert_eq!(end, End::Complete);
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
    // SAFETY: the function's type.
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
            // Our own walker, interrupted everywhere by itself, through code that it has not seen.
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
    // SAFETY: the stepped thread has ended.
    let (ours, theirs) = unsafe { &*DIFFERENCE.0.get() };
    assert_eq!(
        different,
        0,
        "of {steps} steps, {complete} complete\nours:\n{}theirs:\n{}",
        crate::check::names(ours),
        crate::check::names(theirs)
    );
    assert!(steps > 10_000, "{steps}");
    // All but a few: in epilogues of functions that realign their stack, and in the program's .plt entries,
    // which lld gives no unwind information.
    assert!(complete > steps - steps / 500, "{complete} of {steps}");
}
