//! The walker's two system calls. They bypass libc's wrappers, which set `errno` and may be cancellation points: a
//! hook must not set `errno`.

use core::arch::asm;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(target_arch = "x86_64")]
mod number {
    pub(crate) const MMAP: usize = 9;
    pub(crate) const FUTEX: usize = 202;
}
#[cfg(target_arch = "aarch64")]
mod number {
    pub(crate) const MMAP: usize = 222;
    pub(crate) const FUTEX: usize = 98;
}

/// Maps `len` bytes of zeroed memory, which the walker never unmaps. Returns `None` if the kernel has no memory.
pub(crate) fn map(len: usize) -> Option<*mut u8> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: the kernel chooses the place of a new private mapping, so it changes no memory that is in use.
    let address = unsafe { call(number::MMAP, [0, len, protection, flags, usize::MAX, 0]) };
    // The kernel returns errors as addresses in the last page.
    (address < -4096isize as usize).then(|| {
        note(address, len);
        core::ptr::with_exposed_provenance_mut(address)
    })
}

/// Start and length of each mapping. The walker's tables double, so there are few.
static MAPPED: [[AtomicUsize; 2]; 64] = [const { [const { AtomicUsize::new(0) }; 2] }; 64];

fn note(start: usize, len: usize) {
    let is_free = |place: &&[AtomicUsize; 2]| {
        place[0].compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    if let Some([_, length]) = MAPPED.iter().find(is_free) {
        length.store(len, Ordering::Release);
    }
}

/// The addresses of the walker's own tables.
pub fn mapped_ranges() -> impl Iterator<Item = Range<usize>> {
    MAPPED.iter().filter_map(|[start, length]| {
        let (length, start) = (length.load(Ordering::Acquire), start.load(Ordering::Relaxed));
        (length > 0).then(|| start..start + length)
    })
}

/// Whether the word at `address` (a multiple of 4) can be read. The function makes a futex wait that returns at once:
/// this is the only way that needs no descriptor and that nearly all seccomp filters allow.
pub fn is_readable(address: usize) -> bool {
    const UNLIKELY: usize = 0x5bd1_e995;
    let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: a futex wait only reads. It reads the word, for which the kernel handles a bad address, and `no_time`,
    // which is a local variable.
    let result = unsafe {
        call(number::FUTEX, [address, wait, UNLIKELY, (&raw const no_time).expose_provenance(), 0, 0])
    };
    let error = (result as isize).unsigned_abs() as i32;
    [libc::EAGAIN, libc::ETIMEDOUT, libc::EINTR].contains(&error)
}

/// # Safety
///
/// The arguments are valid for the system call `number`: the kernel writes only to memory that the caller may
/// change.
unsafe fn call(number: usize, arguments: [usize; 6]) -> usize {
    let [a, b, c, d, e, f] = arguments;
    let result;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the registers follow the kernel's calling convention, which preserves all others. `map` and
    // `is_readable` pass arguments with which the kernel changes no memory in use.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the registers follow the kernel's calling convention, which preserves all others. `map` and
    // `is_readable` pass arguments with which the kernel changes no memory in use.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}

/// The thread pointer: the address of the thread's control block. The block is at the upper end of the thread's stack,
/// except for the main thread.
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this reads the control block's first word, which by the ABI is the block's own address.
    unsafe {
        asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: this reads a register that user space may read.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags));
    }
    pointer
}

/// One entry of the auxiliary vector; 0 if it is absent.
pub(crate) fn auxiliary(key: core::ffi::c_ulong) -> usize {
    // SAFETY: `getauxval` accepts any key; it reads a vector that the kernel wrote and no thread changes.
    unsafe { libc::getauxval(key) as usize }
}
