//! Walks that cross the frames of signal handlers, on the thread's stack and on one of the handler's own.

use crate::c_library::{Pass, variants};
use crate::check::{check, checked};
use crate::random_stacks::{Script, descend};
use dmd_unwind::{End, capture_here};
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

extern "C" fn handler(signal: c_int) {
    check();
    if signal == libc::SIGUSR1 {
        // A handler inside of a handler.
        // SAFETY: raises a signal that has a handler.
        unsafe { libc::raise(libc::SIGUSR2) };
    }
    let mut script = Script::new(signal as u64, 4, &[], check);
    descend(&mut script);
}

/// Held while a test uses the trap's handler, of which a process has one.
pub(crate) static TRAP: Mutex<()> = Mutex::new(());

pub(crate) fn install(signal: c_int, handler: *const (), flags: c_int) {
    // SAFETY: all zeroes is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = flags;
    // SAFETY: a valid action with a valid handler.
    let error = unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    assert_eq!(error, 0);
}

fn raise() {
    // SAFETY: has a handler.
    unsafe { libc::raise(libc::SIGUSR1) };
}

fn fault() {
    // An interrupted leaf instruction, not a call.
    // SAFETY: the handler of this signal steps over nothing: `int3` goes on behind itself.
    unsafe { std::arch::asm!("int3") };
}

fn use_stack_of(size: usize) -> Vec<u8> {
    let mut memory = vec![0u8; size];
    let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: size };
    // SAFETY: the memory outlives the thread's use of it.
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
            // SAFETY: gives the stack back before its memory goes.
            unsafe { libc::sigaltstack(&none, std::ptr::null_mut()) };
            drop(memory);
        });
        thread.unwrap().join().unwrap();
    }
}

std::arch::global_asm!(
    ".local bare_restorer",
    // Belongs to no function either: the `backtrace` crate would take the entry of one just before.
    "nop",
    "bare_restorer:",
    "mov rax, 15",
    "syscall",
    // The entry of the function before ends where this begins, as for a return address.
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
    assert_eq!(end, End::Complete);
}

/// As in C libraries that give the code that ends a handler no unwind information.
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
        // SAFETY: the kernel's own structure, with a valid handler.
        let error =
            unsafe { libc::syscall(libc::SYS_rt_sigaction, libc::SIGWINCH, &raw const action, none, 8) };
        assert_eq!(error, 0);
    };
    let run = || {
        for seed in 0..20 {
            descend(&mut Script::new(seed, 5, &[], || {
                // SAFETY: has a handler.
                unsafe { libc::raise(libc::SIGWINCH) };
            }));
        }
    };
    install(handler, bare_restorer);
    run();
    assert_eq!(checked().0, 40);
    // The `backtrace` crate goes astray here.
    install(walk_only, second_restorer);
    run();
}
