//! Threads: many that start at once, threads with small stacks, and threads on stacks that are not their own.

use crate::check::{check, checked};
use crate::random_stacks::{Script, descend};
use dmd_unwind::{StackRange, WalkEnd, capture, capture_here};
use std::ffi::c_void;
use std::hint::black_box;
use std::process::Command;
use std::sync::Barrier;

#[test]
fn many_threads_at_once() {
    let barrier = Barrier::new(16);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let barrier = &barrier;
            std::thread::Builder::new()
                .stack_size(8 << 20)
                .spawn_scoped(scope, move || {
                    barrier.wait();
                    for seed in 0..40 {
                        descend(&mut Script::new(seed * 100 + thread, 12, &[], check));
                    }
                    assert_eq!(checked().0, 40);
                })
                .unwrap();
        }
    });
}

/// Sixteen threads look up the same pcs while the cache is empty. The test runs in a separate process.
#[test]
fn concurrent_first_use() {
    let program = std::env::current_exe().unwrap();
    for _ in 0..10 {
        let status = Command::new(&program)
            .args(["--exact", "threads::many_threads_at_once", "--test-threads=1", "-q"])
            .output()
            .unwrap();
        assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    }
}

#[test]
fn on_the_smallest_stack() {
    extern "C" fn run(filled: *mut c_void) -> *mut c_void {
        let mut out = [0; 24];
        let (len, end) = capture_here(&mut out);
        // SAFETY: the thread that joins this one passes a valid place for the result, and reads it only after the
        // join.
        unsafe { *filled.cast::<(usize, Option<WalkEnd>)>() = (len, Some(end)) };
        std::ptr::null_mut()
    }
    let mut result: (usize, Option<WalkEnd>) = (0, None);
    // SAFETY: the type has only integers and bytes, so all zeroes is a valid value.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    let mut thread = 0;
    // SAFETY: `attributes` is valid for a write.
    let initialized = unsafe { libc::pthread_attr_init(&mut attributes) };
    // Without optimization frames are several times as large.
    let size = libc::PTHREAD_STACK_MIN * if cfg!(debug_assertions) { 2 } else { 1 };
    // SAFETY: the call above has initialized the attributes.
    let sized = unsafe { libc::pthread_attr_setstacksize(&mut attributes, size) };
    // SAFETY: the attributes are initialized. The result outlives the thread, which is joined below.
    let created = unsafe { libc::pthread_create(&mut thread, &attributes, run, (&raw mut result).cast()) };
    // SAFETY: the thread is joinable, and this joins it once.
    let joined = unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
    assert_eq!([initialized, sized, created, joined], [0; 4]);
    // The two frames are `start_thread` and `clone3`.
    assert_eq!(result, (2, Some(WalkEnd::Complete)));
}

std::arch::global_asm!(
    // on_stack(top, function, base): has the unwind information of a function that stays on its stack.
    ".local on_stack",
    "on_stack:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 16",
    "push rbp",
    "mov rbp, rsp",
    "mov rsp, rdi",
    "call rdx",
    "mov rsp, rbp",
    "pop rbp",
    "ret",
    ".cfi_endproc",
    // The return address is at an address without memory.
    ".local lost_return_address",
    "lost_return_address:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 100008",
    ".cfi_offset rip, -8",
    "push rax",
    ".cfi_adjust_cfa_offset 8",
    "call rsi",
    "pop rax",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    // The return address is right, but the caller's frame is at an address without memory.
    ".local lost_frame",
    "lost_frame:",
    ".cfi_startproc",
    "push rax",
    ".cfi_def_cfa_offset 100016",
    ".cfi_offset rip, -100008",
    "call rsi",
    "pop rax",
    "ret",
    ".cfi_endproc",
    // Like `lost_frame`, but the distance of the return address is small enough for the packed form.
    ".local near_frame",
    "near_frame:",
    ".cfi_startproc",
    "push rax",
    ".cfi_def_cfa_offset 8016",
    ".cfi_offset rip, -8008",
    "call rsi",
    "pop rax",
    "ret",
    ".cfi_endproc",
);

std::arch::global_asm!(
    // switch(top, function, argument): calls the function on another stack, with the unwind information of `stacker`'s
    // function.
    ".local switch",
    "switch:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, rdi",
    "mov rdi, rdx",
    "call rsi",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
);

/// The caller's stack is above or below the callee's stack, with or without a distance between them.
#[test]
fn on_stacks_of_which_each_calls_the_next() {
    unsafe extern "C" {
        fn switch(top: *mut u8, run: extern "C" fn(*mut c_void), stacks: *mut c_void);
    }
    const SIZE: usize = 256 << 10;
    struct Stacks {
        memory: *mut u8,
        next: std::vec::IntoIter<usize>,
        depths: Vec<usize>,
    }
    /// Walks the stack, and continues on the next stack.
    extern "C" fn run(stacks: *mut c_void) {
        // SAFETY: this test passes a pointer to its value, and no other code uses the value during the call.
        let stacks = unsafe { &mut *stacks.cast::<Stacks>() };
        check();
        let mut out = [0; 256];
        let (len, end) = capture_here(&mut out);
        assert_eq!(end, WalkEnd::Complete, "{:?}", stacks.depths);
        stacks.depths.push(len);
        if let Some(part) = stacks.next.next() {
            let top = stacks.memory.wrapping_add((part + 1) * SIZE);
            // SAFETY: each part is mapped and used once. It is large enough for the function, which returns.
            unsafe { switch(top, run, (&raw mut *stacks).cast()) };
        }
        black_box(stacks);
    }
    let (flags, access) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: the kernel chooses a free place for a new mapping.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), 6 * SIZE, access, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    for parts in [vec![0, 1, 2, 3, 4, 5], vec![5, 4, 3, 2, 1, 0], vec![2, 5, 0, 3, 1, 4]] {
        let mut stacks = Stacks { memory: memory.cast(), next: parts.into_iter(), depths: Vec::new() };
        run((&raw mut stacks).cast());
        assert_eq!(stacks.depths.len(), 7);
        assert!(stacks.depths.is_sorted_by(|inner, outer| inner < outer), "{:?}", stacks.depths);
    }
    // SAFETY: no code uses the mapping after the calls above.
    unsafe { libc::munmap(memory, 6 * SIZE) };
}

/// A coroutine: a call on a separate stack, with no mapping above it and a wrong outermost frame.
#[test]
fn on_a_stack_of_its_own() {
    unsafe extern "C" {
        fn on_stack(top: *mut u8, run: extern "C" fn(), base: unsafe extern "C" fn());
        fn lost_return_address();
        fn lost_frame();
        fn near_frame();
    }
    extern "C" fn run<const LEN: usize>() {
        for _ in 0..2 {
            let mut out = [0; 64];
            let (len, end) = capture_here(&mut out);
            assert!(len <= LEN && end == WalkEnd::Lost, "{len} of {LEN}, {end:?}");
        }
    }
    for round in 0..50 {
        // The readable part ends at a different place in each round.
        let size = 65536 + (round % 3) * 4096;
        let (flags, none) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, std::ptr::null_mut());
        // SAFETY: the kernel chooses a free place for a new mapping.
        let memory = unsafe { libc::mmap(none, 1 << 20, libc::PROT_NONE, flags, -1, 0) };
        // SAFETY: the range is the lower part of the new mapping.
        let error = unsafe { libc::mprotect(memory, size, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(error, 0);
        let top = memory.cast::<u8>().wrapping_add(size);
        // SAFETY: the mapping ends its writable part at `top` and is large enough for the function, which returns.
        unsafe { on_stack(top, run::<1>, lost_return_address) };
        // SAFETY: as above.
        unsafe { on_stack(top, run::<2>, lost_frame) };
        // SAFETY: as above.
        unsafe { on_stack(top, run::<2>, near_frame) };
        // SAFETY: no code uses the mapping after the calls above.
        unsafe { libc::munmap(memory, 1 << 20) };
    }
}

#[test]
fn only_as_many_as_there_is_room_for() {
    let mut whole = [0; 64];
    let (len, end) = capture_here(&mut whole);
    assert_eq!(end, WalkEnd::Complete);
    assert!(len > 5);
    let mut stack = StackRange::new();
    for room in 0..len {
        let mut out = vec![0; room];
        let (filled, end) = black_box(capture(&mut stack, &mut out));
        assert_eq!((filled, end), (room, WalkEnd::Enough));
        assert_eq!(out, whole[..room]);
    }
}
