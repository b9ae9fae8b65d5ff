//! The registers of a stopped thread on x86-64.

use gimli::{Register, X86_64};

/// The kernel's structure with the general registers of a thread.
pub(crate) type ThreadRegisters = libc::user_regs_struct;

/// The number of DWARF's registers that a walk follows.
pub(crate) const REGISTERS: usize = 17;
pub(crate) const STACK_POINTER: Register = X86_64::RSP;
pub(crate) const RETURN_ADDRESS: Register = X86_64::RA;

/// The number of the kernel's register set that contains the vector registers.
pub(crate) const VECTORS: libc::c_int = 0x202;

/// The code segment of 64-bit programs.
const LONG_MODE: u64 = 0x33;
/// The direction flag and the trap flag.
const FLAGS_TO_CLEAR: u64 = 0x400 | 0x100;

pub(crate) fn pc(registers: &ThreadRegisters) -> u64 {
    registers.rip
}

pub(crate) fn stack_pointer(registers: &ThreadRegisters) -> u64 {
    registers.rsp
}

pub(crate) fn result(registers: &ThreadRegisters) -> u64 {
    registers.rax
}

/// Calls `each` for the registers that code may use for the address of a function.
pub(crate) fn for_each_kept(registers: &mut ThreadRegisters, mut each: impl FnMut(&mut u64)) {
    let r = registers;
    let kept = [
        &mut r.rbx, &mut r.rbp, &mut r.r8, &mut r.r9, &mut r.r10, &mut r.r12, &mut r.r13, &mut r.r14,
        &mut r.r15, &mut r.rcx, &mut r.rdx, &mut r.rsi, &mut r.rdi,
    ];
    kept.into_iter().for_each(&mut each);
    // In a system call, this register is the call's number or result.
    if r.orig_rax as i64 == -1 {
        each(&mut r.rax);
    }
}

/// The address of the thread's own data.
pub(crate) fn thread_pointer(registers: &ThreadRegisters) -> Option<u64> {
    Some(registers.fs_base)
}

/// Whether the thread runs 64-bit code.
pub(crate) fn is_64_bit(registers: &ThreadRegisters) -> bool {
    registers.cs == LONG_MODE
}

/// The registers by their numbers in DWARF.
pub(crate) fn by_dwarf(registers: &ThreadRegisters) -> [Option<u64>; REGISTERS] {
    let r = registers;
    [
        r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
        r.r14, r.r15, r.rip,
    ]
    .map(Some)
}

/// The registers for a call. `stack` is a multiple of 16. The caller puts the return address at the returned stack
/// pointer.
pub(crate) fn for_call(
    registers: &ThreadRegisters,
    function: u64,
    stack: u64,
    arguments: [u64; 6],
) -> (ThreadRegisters, u64) {
    let mut call = *registers;
    let stack = stack - 8;
    let [a, b, c, d, e, f] = arguments;
    (call.rdi, call.rsi, call.rdx, call.rcx, call.r8, call.r9) = (a, b, c, d, e, f);
    (call.rip, call.rsp, call.rbp, call.rax) = (function, stack, 0, 0);
    call.eflags &= !FLAGS_TO_CLEAR;
    // The kernel must not restart the interrupted system call during the call.
    call.orig_rax = u64::MAX;
    (call, stack)
}

/// The bytes after a change in which a thread must not be, because an instruction there changes, too. On x86-64 each
/// change is in one instruction.
pub(crate) const CHANGED_TOGETHER: Option<u64> = None;

/// The bytes below the stack pointer that a function without calls may use.
pub(crate) const RED_ZONE: u64 = 128;

/// System calls that the stop ends with EINTR, although no signal arrives: the kernel does not restart them. A call
/// with this error has had no effect, so that it can be made again.
const NOT_RESTARTED: [i64; 18] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// The system calls that only x86-64 has, in which a thread waits, and holds no lock of an allocator.
pub(crate) const OLD_WAITING: [i64; 4] =
    [libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait, libc::SYS_pause];

/// The code address in a return address. On x86-64, both are equal.
pub(crate) fn code_address(address: u64) -> u64 {
    address
}

/// Whether [`making_the_call_again`] can repeat a system call that a stop ended with EINTR.
pub(crate) const MAKES_CALLS_AGAIN: bool = true;

/// Whether a thread in this system call gets EINTR if it is stopped.
pub(crate) fn is_not_restarted(call: i64) -> bool {
    NOT_RESTARTED.contains(&call)
}

/// The registers with which a thread makes its interrupted system call again; `None` if the kernel does that itself.
pub(crate) fn making_the_call_again(registers: &ThreadRegisters) -> Option<ThreadRegisters> {
    const LENGTH: u64 = 2;
    let is_interrupted = registers.rax as i64 == -i64::from(libc::EINTR);
    if !is_interrupted || !is_not_restarted(registers.orig_rax as i64) {
        return None;
    }
    let mut again = *registers;
    again.rax = registers.orig_rax;
    again.rip -= LENGTH;
    again.orig_rax = u64::MAX;
    Some(again)
}

/// Whether the code before a return address is a call.
pub(crate) fn is_after_call(before: &[u8; 8]) -> bool {
    // Direct calls have five bytes; indirect ones have two to seven.
    before[3] == 0xe8
        || (2..=7).any(|length| {
            let at = 8 - length;
            before[at] == 0xff && before[at + 1] & 0x38 == 0x10
        })
}
