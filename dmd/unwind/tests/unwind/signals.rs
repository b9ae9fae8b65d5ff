//! Walks across the frames of signal handlers, on the thread's stack and on a stack of the handler.

use crate::c_library::{Pass, variants};
use crate::check::{check, checked};
use crate::random_stacks::{Script, descend};
use dmd_unwind::{WalkEnd, capture_here};
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

extern "C" fn handler(signal: c_int) {
    check();
    if signal == libc::SIGUSR1 {
        // A handler inside of a handler.
        // SAFETY: the call has no precondition; the signal has a handler.
        unsafe { libc::raise(libc::SIGUSR2) };
    }
    let mut script = Script::new(signal as u64, 4, &[], check);
    descend(&mut script);
}

/// Held by a test while it uses the trap's handler, since a process has only one such handler.
pub(crate) static TRAP: Mutex<()> = Mutex::new(());

pub(crate) fn install(signal: c_int, handler: *const (), flags: c_int) {
    // SAFETY: all zeroes is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = flags;
    // SAFETY: the action is valid: every caller passes a handler that suits the flags.
    let error = unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    assert_eq!(error, 0);
}

fn raise() {
    // SAFETY: the call has no precondition; the signal has a handler.
    unsafe { libc::raise(libc::SIGUSR1) };
}

fn fault() {
    // The signal interrupts an instruction that is not a call.
    // SAFETY: the trap has a handler, and the program continues after `int3` when the handler returns.
    unsafe { std::arch::asm!("int3") };
}

fn use_stack_of(size: usize) -> Vec<u8> {
    let mut memory = vec![0u8; size];
    let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: size };
    // SAFETY: `stack` describes `memory`, and the caller keeps it until the thread no longer uses it.
    let error = unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) };
    assert_eq!(error, 0);
    memory
}

#[test]
fn through_handlers() {
    let _trap = TRAP.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let libraries = variants(folder.path());
    let passes: Vec<Pass> = libraries.iter().map(|library| library.pass()).collect();
    for flags in [0, libc::SA_ONSTACK, libc::SA_SIGINFO] {
        let passes = passes.clone();
        let thread = std::thread::Builder::new().stack_size(32 << 20).spawn(move || {
            let memory = use_stack_of(1 << 20);
            for signal in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGTRAP] {
                install(signal, handler as *const (), flags);
            }
            for seed in 0..120 {
                let at_end = if seed % 2 == 0 { raise } else { fault };
                descend(&mut Script::new(seed, 1 + seed as u32 % 20, &passes, at_end));
            }
            let (stacks, frames) = checked();
            assert_eq!(stacks, 60 * 4 + 60 * 2);
            assert!(frames > stacks * 12);
            let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: `none` is valid. The thread stops using the stack here, before its memory is freed.
            unsafe { libc::sigaltstack(&none, std::ptr::null_mut()) };
            drop(memory);
        });
        thread.unwrap().join().unwrap();
    }
}

std::arch::global_asm!(
    ".local bare_restorer",
    // This `nop` separates `bare_restorer` from the function before it: the `backtrace` crate would use that function's
    // entry if the function ended right before `bare_restorer`.
    "nop",
    "bare_restorer:",
    "mov rax, 15",
    "syscall",
    // The function before this one ends where this one starts. So the start of this function, as a return address,
    // would belong to the function before.
    ".local second_restorer",
    ".cfi_startproc",
    "ret",
    ".cfi_endproc",
    "second_restorer:",
    "mov rax, 15",
    "syscall",
);

extern "C" fn walk_only(_: c_int) {
    let (len, end) = capture_here(&mut [0; 128]);
    assert!(len > 10);
    assert_eq!(end, WalkEnd::Complete);
}

/// In some C libraries, the code that ends a handler has no unwind information. Only its instructions identify the
/// frame.
#[test]
fn through_a_frame_that_only_its_code_tells() {
    unsafe extern "C" {
        fn bare_restorer();
        fn second_restorer();
    }
    #[repr(C)]
    struct KernelAction {
        handler: usize,
        flags: u64,
        restorer: usize,
        mask: u64,
    }
    const SA_RESTORER: u64 = 0x0400_0000;
    let install = |handler: extern "C" fn(c_int), restorer: unsafe extern "C" fn()| {
        let (handler, restorer) = (handler as *const () as usize, restorer as *const () as usize);
        let action = KernelAction { handler, flags: SA_RESTORER, restorer, mask: 0 };
        let none = std::ptr::null_mut::<KernelAction>();
        // SAFETY: `action` has the layout of the kernel's structure, and a valid handler and restorer.
        let error =
            unsafe { libc::syscall(libc::SYS_rt_sigaction, libc::SIGWINCH, &raw const action, none, 8) };
        assert_eq!(error, 0);
    };
    let run = || {
        for seed in 0..20 {
            descend(&mut Script::new(seed, 5, &[], || {
                // SAFETY: the call has no precondition; the signal has a handler.
                unsafe { libc::raise(libc::SIGWINCH) };
            }));
        }
    };
    install(handler, bare_restorer);
    run();
    assert_eq!(checked().0, 40);
    // Only dmd's walker runs here: the `backtrace` crate returns a wrong stack.
    install(walk_only, second_restorer);
    run();
}
