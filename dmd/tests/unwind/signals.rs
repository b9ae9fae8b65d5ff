//! Walks that cross the frames of signal handlers, on the thread's stack and on one of the handler's own.

use crate::c_library::{Pass, variants};
use crate::check::{check, checked};
use crate::random_stacks::{Script, descend};
use std::ffi::c_int;

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
            for seed in 0..300 {
                let at_end = if seed % 2 == 0 { raise } else { fault };
                descend(&mut Script::new(seed, 1 + seed as u32 % 20, &passes, at_end));
            }
            let (stacks, frames) = checked();
            assert_eq!(stacks, 150 * 4 + 150 * 2);
            assert!(frames > stacks * 12);
            let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: gives the stack back before its memory goes.
            unsafe { libc::sigaltstack(&none, std::ptr::null_mut()) };
            drop(memory);
        });
        thread.unwrap().join().unwrap();
    }
}
