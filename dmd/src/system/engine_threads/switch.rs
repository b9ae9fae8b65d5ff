//! Starts a thread of the kernel on a stack, and leaves a stack so that another thread of the kernel can continue
//! there.

/// The number of words that [`leave`] puts on the stack, and that the new thread of [`clone_onto`] takes from there.
/// The word with the number [`GO_ON`] contains the address at which the thread continues.
#[cfg(target_arch = "x86_64")]
pub(super) const WORDS: usize = 8;
#[cfg(target_arch = "x86_64")]
pub(super) const GO_ON: usize = 6;

/// The number of words for `leave` and `clone_onto` on aarch64.
#[cfg(target_arch = "aarch64")]
pub(super) const WORDS: usize = 20;
#[cfg(target_arch = "aarch64")]
pub(super) const GO_ON: usize = 11;

/// Starts a thread with this thread pointer. The thread takes its registers from the stack and continues at the
/// address there. The kernel writes the thread's number to `number` before the thread runs. Returns the number, or a
/// negative error.
///
/// # Safety
///
/// The stack contains the [`WORDS`] of [`leave`], or of a new thread, and no other thread uses the stack. `tls` is the
/// thread pointer of the thread that left the stack.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn clone_onto(
    flags: usize,
    stack: usize,
    number: *mut u32,
    tls: usize,
) -> isize {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        "mov r8, rcx",
        "mov eax, {clone}",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
        clone = const libc::SYS_clone,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "mov x8, {clone}",
        "svc 0",
        "cbz x0, 2f",
        "ret",
        "2:",
        "ldp x19, x20, [sp]",
        "ldp x21, x22, [sp, #16]",
        "ldp x23, x24, [sp, #32]",
        "ldp x25, x26, [sp, #48]",
        "ldp x27, x28, [sp, #64]",
        "ldp x29, x30, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "add sp, sp, #160",
        "ret",
        clone = const libc::SYS_clone,
    );
}

/// Puts the registers of this thread on its stack, writes the stack pointer to `stack`, and ends the thread of the
/// kernel. Returns on the thread that [`clone_onto`] starts on this stack.
///
/// # Safety
///
/// `stack` is a valid place for the stack pointer.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn leave(stack: *mut usize) {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov qword ptr [rdi], rsp",
        "xor edi, edi",
        "mov eax, {exit}",
        "syscall",
        "ud2",
        exit = const libc::SYS_exit,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "sub sp, sp, #160",
        "stp x19, x20, [sp]",
        "stp x21, x22, [sp, #16]",
        "stp x23, x24, [sp, #32]",
        "stp x25, x26, [sp, #48]",
        "stp x27, x28, [sp, #64]",
        "stp x29, x30, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mov x1, sp",
        "str x1, [x0]",
        "mov x0, 0",
        "mov x8, {exit}",
        "svc 0",
        "brk 1",
        exit = const libc::SYS_exit,
    );
}
