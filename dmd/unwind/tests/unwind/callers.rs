//! Walks that start at a caller with only a known stack pointer and frame pointer.

use crate::check::{check_here, checked};
use core::arch::global_asm;
use dmd_unwind::{Caller, LastStack, Registers, StackRange, WalkEnd};
use std::hint::black_box;

global_asm!(
    // Calls a function. The stack pointer of its caller is an expression, as in functions that align their stack.
    ".globl call_by_expression",
    "call_by_expression:",
    ".cfi_startproc",
    "lea r10, [rsp + 8]",
    ".cfi_def_cfa r10, 0",
    "and rsp, -64",
    "push qword ptr [r10 - 8]",
    "push rbp",
    ".cfi_escape 0x10, 0x6, 0x2, 0x76, 0x0",
    "mov rbp, rsp",
    "push r10",
    ".cfi_escape 0xf, 0x3, 0x76, 0x78, 0x6",
    "sub rsp, 40",
    "call rdi",
    "add rsp, 40",
    "pop r10",
    ".cfi_def_cfa r10, 0",
    "pop rbp",
    "lea rsp, [r10 - 8]",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    // Calls a function. The stack pointer of its caller is only in rbx, which the walk does not follow at first.
    ".globl call_by_rbx",
    "call_by_rbx:",
    ".cfi_startproc",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rbx, -16",
    "lea rbx, [rsp + 16]",
    ".cfi_def_cfa rbx, 0",
    "sub rsp, 64",
    "and rsp, -32",
    "call rdi",
    "lea rsp, [rbx - 16]",
    ".cfi_def_cfa rsp, 16",
    "pop rbx",
    ".cfi_def_cfa_offset 8",
    "ret",
    ".cfi_endproc",
    // Calls a function on another stack, as its outermost frame.
    ".globl call_on_stack",
    "call_on_stack:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, rdi",
    ".cfi_undefined rip",
    "call rsi",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
);

unsafe extern "C-unwind" {
    fn call_by_expression(function: extern "C-unwind" fn());
    fn call_by_rbx(function: extern "C-unwind" fn());
    fn call_on_stack(top: *mut u8, function: extern "C-unwind" fn());
}

extern "C-unwind" fn check_twice() {
    check_here();
    check_here();
    // Prevents the compiler from turning the call into a jump.
    black_box(());
}

extern "C-unwind" fn check_by_expression() {
    // SAFETY: the function above follows the calling convention.
    unsafe { call_by_expression(check_here) };
    black_box(());
}

#[inline(never)]
fn check_at_depth(depth: u32) {
    check_here();
    for function in [check_here, check_twice, check_by_expression] {
        for call in [call_by_expression, call_by_rbx] {
            // SAFETY: the functions above follow the calling convention.
            unsafe { call(function) };
        }
    }
    if depth > 0 {
        check_at_depth(depth - 1);
    }
    check_here();
}

/// The rules of these frames need registers that the walk does not follow at first. So the walk starts again at its
/// innermost frame, which the caller has called, and follows all registers.
#[test]
fn whose_step_needs_other_registers() {
    check_at_depth(10);
    assert_eq!(checked().0, 11 * 10);
}

extern "C-unwind" fn check_a_little_deeper() {
    check_at_depth(2);
    black_box(());
}

/// On a stack that is not the thread's own, the walk at first knows only one mapped page: the page of its own stack
/// pointer.
#[test]
fn on_another_page_of_another_stack() {
    let mut stack = vec![0_u128; (256 << 10) / size_of::<u128>()];
    let end = stack.as_mut_ptr_range().end.cast::<u8>();
    for offset in (0..4096).step_by(64) {
        // SAFETY: the function above follows the calling convention, and the stack is large enough and aligned.
        unsafe { call_on_stack(end.wrapping_sub(offset), check_a_little_deeper) };
    }
    assert_eq!(checked().0, 64 * 3 * 10);
}

#[test]
fn that_are_none() {
    let mut range = StackRange::new();
    let mut last = Box::new(LastStack::new(0));
    let mut walk = |place, fp| {
        last.tag(&Registers::here(), &mut range, Some(Caller::new(place, fp)), 0, |frames, _| frames + 1)
    };
    let local = 0_usize;
    let here = (&raw const local).addr();
    for fp in [0, usize::MAX - 7, here, here + 4] {
        for place in [0, 1, 7, 8, 16, 1 << 47, usize::MAX - 15, usize::MAX - 7, usize::MAX] {
            assert_eq!(walk(place, fp), (0, WalkEnd::Lost), "{place:#x} {fp:#x}");
        }
        // Any word of the stack may look like a return address: every walk must end without a crash.
        for place in (here..here + 50_000).step_by(4) {
            black_box(walk(place, fp));
        }
    }
}
