//! Walks of aarch64 through functions in assembly that sign their return addresses, with and without a frame pointer.
//! Both the walker and libgcc's unwinder must find the same callers.
#![cfg(all(target_os = "linux", target_arch = "aarch64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use core::arch::global_asm;
use core::cell::RefCell;
use dmd_unwind::{Caller, LastStack, Registers, StackRange};

// Each function takes a callback and a number. It calls the callback with the number and with the return address that
// the function itself has saved. `paciasp` is a hint, which a processor without signatures ignores.
global_asm!(
    ".pushsection .text.by_eh_frame, \"ax\", @progbits",
    // The frame pointer belongs to a caller: only `.eh_frame` contains the position of the return address.
    ".global signed_without_frame_pointer",
    "signed_without_frame_pointer:",
    ".cfi_startproc",
    "hint #25",
    ".cfi_negate_ra_state",
    "sub sp, sp, #48",
    ".cfi_def_cfa_offset 48",
    "str x30, [sp, #16]",
    ".cfi_offset x30, -32",
    "mov x9, x0",
    "mov x0, x1",
    "mov x1, x30",
    "blr x9",
    "ldr x30, [sp, #16]",
    ".cfi_restore x30",
    "add sp, sp, #48",
    ".cfi_def_cfa_offset 0",
    "hint #29",
    ".cfi_negate_ra_state",
    "ret",
    ".cfi_endproc",
    // The frame pointer and the return address are a pair, as compilers save them.
    ".global signed_with_frame_pointer",
    "signed_with_frame_pointer:",
    ".cfi_startproc",
    "hint #25",
    ".cfi_negate_ra_state",
    "stp x29, x30, [sp, #-32]!",
    ".cfi_def_cfa_offset 32",
    ".cfi_offset x29, -32",
    ".cfi_offset x30, -24",
    "mov x29, sp",
    ".cfi_def_cfa x29, 32",
    // The stack pointer changes without unwind information: only the frame pointer leads to the caller.
    "sub sp, sp, #64",
    "mov x9, x0",
    "mov x0, x1",
    "mov x1, x30",
    "blr x9",
    "mov sp, x29",
    ".cfi_def_cfa sp, 32",
    "ldp x29, x30, [sp], #32",
    ".cfi_restore x30",
    ".cfi_restore x29",
    ".cfi_def_cfa_offset 0",
    "hint #29",
    ".cfi_negate_ra_state",
    "ret",
    ".cfi_endproc",
    // Like the function before, but without signatures.
    ".global unsigned_with_frame_pointer",
    "unsigned_with_frame_pointer:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-32]!",
    ".cfi_def_cfa_offset 32",
    ".cfi_offset x29, -32",
    ".cfi_offset x30, -24",
    "mov x29, sp",
    ".cfi_def_cfa x29, 32",
    "mov x9, x0",
    "mov x0, x1",
    "mov x1, x30",
    "blr x9",
    "ldp x29, x30, [sp], #32",
    ".cfi_restore x30",
    ".cfi_restore x29",
    ".cfi_def_cfa sp, 0",
    "ret",
    ".cfi_endproc",
    ".popsection",
);

type Next = extern "C" fn(usize, usize);

unsafe extern "C" {
    fn signed_without_frame_pointer(next: Next, depth: usize);
    fn signed_with_frame_pointer(next: Next, depth: usize);
    fn unsigned_with_frame_pointer(next: Next, depth: usize);
}

/// The callers that a callback found at its depth.
struct Seen {
    walked: Vec<usize>,
    /// The callers by a walk that reuses the last walk and starts at the callback.
    by_tags: Vec<usize>,
    by_libgcc: Vec<usize>,
    saved: usize,
}

thread_local! {
    static SEEN: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
    static FUNCTIONS: RefCell<Vec<unsafe extern "C" fn(Next, usize)>> = const { RefCell::new(Vec::new()) };
}

/// All calls that walks have named, each as the caller's name and the return address. A name is an index in this list
/// plus 1.
type Calls = Vec<(usize, usize)>;

thread_local! {
    static LAST: RefCell<(StackRange, Box<LastStack<usize>>, Calls)> =
        RefCell::new((StackRange::new(), Box::new(LastStack::new(0)), Calls::new()));
}

/// Finds the return addresses from the caller's call outwards.
#[unsafe(naked)]
extern "C" fn callers_here(callers: &mut Vec<usize>) {
    core::arch::naked_asm!("mov x1, x30", "mov x2, xzr", "b {}", sym callers_from)
}

/// Continues [`callers_here`], which jumps to this function.
extern "C" fn callers_from(callers: &mut Vec<usize>, place: usize, fp: usize) {
    LAST.with_borrow_mut(|(range, last, calls)| {
        let child = |caller, pc| {
            calls.push((caller, pc));
            calls.len()
        };
        let from = Some(Caller::new(place, fp));
        let (mut name, _end) = last.tag(&Registers::here(), range, from, 0, child);
        while let Some(&(caller, pc)) = name.checked_sub(1).and_then(|at| calls.get(at)) {
            callers.push(pc);
            name = caller;
        }
    });
}

/// Walks the stack, and goes one call deeper.
extern "C" fn look(depth: usize, saved: usize) {
    let mut walked = [0; 256];
    let (count, _end) = dmd_unwind::capture_here(&mut walked);
    let mut by_libgcc = Vec::new();
    backtrace::trace(|frame| {
        // The outermost function has the return address 0, which is not a caller.
        by_libgcc.extend(Some(frame.ip().addr()).filter(|pc| *pc != 0));
        true
    });
    let mut by_tags = Vec::new();
    callers_here(&mut by_tags);
    // The first address is in this function.
    let by_tags = by_tags.split_off(1);
    SEEN.with_borrow_mut(|seen| {
        seen.push(Seen { walked: walked[..count].to_vec(), by_tags, by_libgcc, saved })
    });
    let function = FUNCTIONS.with_borrow(|functions| functions.get(depth).copied());
    if let Some(function) = function {
        // SAFETY: the functions above follow the calling convention, and take this function and a number.
        unsafe { function(look, depth + 1) };
    }
}

fn seen(functions: &[unsafe extern "C" fn(Next, usize)]) -> Vec<Seen> {
    FUNCTIONS.set(functions.to_vec());
    look(0, 0);
    SEEN.take()
}

/// Compares the callers outside of `look`: both lists end with them.
fn check(seen: &[Seen]) {
    for (depth, seen) in seen.iter().enumerate() {
        // `look` itself is one frame. Each call adds one frame of the assembly and one frame of `look`.
        let callers = seen.walked.len();
        assert!(callers > 2 * depth, "{depth}: {callers} callers");
        assert!(seen.by_libgcc.ends_with(&seen.walked), "{depth}: {:x?} {:x?}", seen.walked, seen.by_libgcc);
        assert!(seen.walked.iter().all(|pc| pc >> 48 == 0), "{depth}: {:x?}", seen.walked);
        assert_eq!(seen.by_tags, seen.walked, "{depth}");
    }
}

#[test]
fn by_eh_frame_alone_with_signed_return_addresses() {
    let seen = seen(&[signed_without_frame_pointer as _; 6]);
    assert_eq!(seen.len(), 7);
    check(&seen);
}

#[test]
fn by_frame_pointers_with_signed_return_addresses() {
    let seen = seen(&[signed_with_frame_pointer as _; 6]);
    assert_eq!(seen.len(), 7);
    check(&seen);
}

#[test]
fn by_all_kinds_of_frames_in_turn() {
    let kinds: [unsafe extern "C" fn(Next, usize); 3] =
        [signed_without_frame_pointer, unsigned_with_frame_pointer, signed_with_frame_pointer];
    let functions: Vec<_> = kinds.into_iter().cycle().take(30).collect();
    let seen = seen(&functions);
    assert_eq!(seen.len(), 31);
    check(&seen);
}

/// Checks that signatures really occur: otherwise the tests above would not test them. The processor, or its emulator,
/// makes the signatures.
#[test]
fn the_processor_signs() {
    if !std::arch::is_aarch64_feature_detected!("paca") {
        return;
    }
    let signed = seen(&[signed_with_frame_pointer as _; 6]);
    assert!(signed.iter().any(|seen| seen.saved >> 48 != 0), "a signature is in the upper bits");
    let unsigned = seen(&[unsigned_with_frame_pointer as _; 6]);
    assert!(unsigned.iter().all(|seen| seen.saved >> 48 == 0));
}
