//! The registers of a stopped thread on aarch64.

use gimli::{AArch64, Register};

/// The kernel's structure with the general registers of a thread.
pub(crate) type ThreadRegisters = libc::user_regs_struct;

/// The number of DWARF's registers that a walk follows.
pub(crate) const REGISTERS: usize = 33;
pub(crate) const STACK_POINTER: Register = AArch64::SP;
pub(crate) const RETURN_ADDRESS: Register = AArch64::X30;

/// The number of the kernel's register set that contains the vector registers.
pub(crate) const VECTORS: libc::c_int = 2;

pub(crate) fn pc(registers: &ThreadRegisters) -> u64 {
    registers.pc
}

pub(crate) fn stack_pointer(registers: &ThreadRegisters) -> u64 {
    registers.sp
}

pub(crate) fn result(registers: &ThreadRegisters) -> u64 {
    registers.regs[0]
}

/// Calls `each` for the registers that code may use for the address of a function.
pub(crate) fn for_each_kept(registers: &mut ThreadRegisters, each: impl FnMut(&mut u64)) {
    registers.regs[..30].iter_mut().for_each(each);
}

/// `None`: the address of the thread's own data is in another register set.
pub(crate) fn thread_pointer(_: &ThreadRegisters) -> Option<u64> {
    None
}

/// Whether the thread runs 64-bit code: the mode is in the state of the processor.
pub(crate) fn is_64_bit(registers: &ThreadRegisters) -> bool {
    const MODE_32: u64 = 0x10;
    registers.pstate & MODE_32 == 0
}

/// The registers by their numbers in DWARF.
pub(crate) fn by_dwarf(registers: &ThreadRegisters) -> [Option<u64>; REGISTERS] {
    let mut all = [None; REGISTERS];
    for (place, value) in all.iter_mut().zip(registers.regs) {
        *place = Some(value);
    }
    all[31] = Some(registers.sp);
    all[32] = Some(registers.pc);
    all
}

/// The registers for a call. `stack` is a multiple of 16. The return address is 0.
pub(crate) fn for_call(
    registers: &ThreadRegisters,
    function: u64,
    stack: u64,
    arguments: [u64; 6],
) -> (ThreadRegisters, u64) {
    let mut call = *registers;
    call.regs[..6].copy_from_slice(&arguments);
    call.regs[29] = 0;
    call.regs[30] = 0;
    call.pc = function;
    call.sp = stack - 16;
    (call, stack - 16)
}

/// The bytes after a change in which a thread must not be, because an instruction there changes, too: the second one of a
/// pair that makes an address.
pub(crate) const CHANGED_TOGETHER: Option<u64> = Some(68);

/// The bytes below the stack pointer that a function without calls may use.
pub(crate) const RED_ZONE: u64 = 0;

const NOT_RESTARTED: [i64; 8] = [
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semtimedop,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
];

/// Empty: only x86-64 has these old system calls in which a thread waits.
pub(crate) const OLD_WAITING: [i64; 0] = [];

/// The code address in a return address, without the signature that the processor may have put into the upper bits.
pub(crate) fn code_address(address: u64) -> u64 {
    const ADDRESS_BITS: u32 = 48;
    address & ((1 << ADDRESS_BITS) - 1)
}

/// Whether [`making_the_call_again`] can repeat a system call that a stop ended with EINTR.
pub(crate) const MAKES_CALLS_AGAIN: bool = false;

/// Whether a thread in this system call gets EINTR if it is stopped.
pub(crate) fn is_not_restarted(call: i64) -> bool {
    NOT_RESTARTED.contains(&call)
}

/// The kernel does not keep the first argument where a tracer can read it, so the call is not made again.
pub(crate) fn making_the_call_again(_: &ThreadRegisters) -> Option<ThreadRegisters> {
    None
}

/// Whether the code before a return address is a call: `bl` or `blr`.
pub(crate) fn is_after_call(before: &[u8; 8]) -> bool {
    let instruction = u32::from_le_bytes([before[4], before[5], before[6], before[7]]);
    instruction >> 26 == 0x25 || instruction & 0xffff_fc1f == 0xd63f_0000
}
