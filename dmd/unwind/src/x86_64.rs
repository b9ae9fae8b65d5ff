//! x86-64: its registers, their capture, and the packed rule of a usual frame.

use core::arch::asm;

use crate::walker::WalkStart;
use crate::words::StackWords;

/// The columns of DWARF: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, return address.
pub(crate) const REGISTERS: usize = 17;
pub(crate) const FP: usize = 6;
pub(crate) const SP: usize = 7;
pub(crate) const RETURN_ADDRESS: usize = 16;

/// The start of a walk: a point inside a function, and all registers that functions keep for their callers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Registers {
    pub(crate) pc: usize,
    pub(crate) sp: usize,
    pub(crate) fp: usize,
    rbx: usize,
    r12: usize,
    r13: usize,
    r14: usize,
    r15: usize,
}

impl Registers {
    /// The registers of the function into which this is inlined. A walk from here passes the function's return address
    /// first.
    #[inline(always)]
    pub fn here() -> Registers {
        let mut registers = core::mem::MaybeUninit::<Registers>::uninit();
        // SAFETY: the assembly writes only the eight words of `registers` and one scratch register, which it
        // declares.
        unsafe {
            asm!(
                "lea {scratch}, [rip]",
                "mov [{to}], {scratch}",
                "mov [{to} + 8], rsp",
                "mov [{to} + 16], rbp",
                "mov [{to} + 24], rbx",
                "mov [{to} + 32], r12",
                "mov [{to} + 40], r13",
                "mov [{to} + 48], r14",
                "mov [{to} + 56], r15",
                scratch = out(reg) _,
                to = in(reg) registers.as_mut_ptr(),
                options(nostack, preserves_flags),
            );
        }
        // SAFETY: the assembly above wrote all eight words, and any word is a valid register.
        unsafe { registers.assume_init() }
    }

    /// The kept registers except the stack and frame pointers, with their columns.
    pub(crate) fn others(&self) -> [(usize, usize); 5] {
        [(3, self.rbx), (12, self.r12), (13, self.r13), (14, self.r14), (15, self.r15)]
    }
}

/// The caller of a function, as the function finds it at its first instruction.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    sp: usize,
    fp: usize,
}

impl Caller {
    /// `place` is the address above the return address, and `fp` is the frame pointer register, both at the function's
    /// first instruction; only assembly can read them. A walk checks both: with wrong values it finds no frame, or a
    /// stack that does not exist.
    #[inline(always)]
    pub fn new(place: usize, fp: usize) -> Caller {
        Caller { sp: place, fp }
    }

    #[inline(always)]
    pub(crate) fn begin(self) -> WalkStart {
        WalkStart::Frame { sp: self.sp, fp: self.fp, pc_at: self.sp.wrapping_sub(8) }
    }
}

/// Returns `pc` unchanged: return addresses are not signed on this architecture.
#[inline(always)]
pub(crate) fn strip(pc: usize) -> usize {
    pc
}

/// The code of the kernel's signal frame, for C libraries whose `__restore_rt` has no unwind rules: `mov $15, %rax;
/// syscall`.
pub(crate) const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// The columns and offsets of the registers in the `ucontext_t` at the stack pointer of a signal frame.
pub(crate) const SIGNAL_CONTEXT: [(usize, usize); 17] = [
    (8, 0x28),
    (9, 0x30),
    (10, 0x38),
    (11, 0x40),
    (12, 0x48),
    (13, 0x50),
    (14, 0x58),
    (15, 0x60),
    (5, 0x68),
    (4, 0x70),
    (6, 0x78),
    (3, 0x80),
    (1, 0x88),
    (0, 0x90),
    (2, 0x98),
    (7, 0xa0),
    (16, 0xa8),
];

/// The bit of a packed rule that is set if the CFA counts from the frame pointer.
pub(crate) const FROM_FP: u16 = 1 << 14;

/// Packs a usual frame into fifteen bits. The return address is just below the CFA. The frame pointer is kept, or
/// saved in one of the words below. Bit 14: the CFA counts from the frame pointer. Bits 4 to 13: the distance of the
/// CFA in words. Bits 0 to 3: the distance from the return address down to the frame pointer in words, 0 if the frame
/// pointer is kept.
pub(crate) fn pack(from_fp: bool, cfa: u32, fp: u32, return_address: u32) -> Option<u16> {
    let below = fp.saturating_sub(1);
    if return_address != 1 || cfa == 0 || cfa > 0x3ff || fp == 1 || below > 15 {
        return None;
    }
    // A step from the stack pointer reads nothing below it.
    if !from_fp && cfa <= below {
        return None;
    }
    Some(if from_fp { FROM_FP } else { 0 } | (cfa as u16) << 4 | below as u16)
}

/// Unpacks a rule into the CFA and the distance from the CFA down to the lowest word that the step reads.
#[inline(always)]
pub(crate) fn unpack(rule: u16, sp: usize, fp: usize) -> (usize, usize) {
    let base = if rule & FROM_FP != 0 { fp } else { sp };
    let cfa = base.wrapping_add(usize::from(rule >> 4 & 0x3ff) * 8);
    (cfa, usize::from(rule & 15) * 8 + 8)
}

/// Reads the caller's pc from the word below the CFA, and the frame pointer, if it is saved, from the lowest word that
/// [`unpack`] names. Also returns the words that it read.
#[inline(always)]
pub(crate) fn caller(
    rule: u16,
    cfa: usize,
    fp: usize,
    read: impl Fn(usize) -> usize,
) -> (usize, usize, StackWords) {
    let pc = cfa - 8;
    match rule & 15 {
        0 => (read(pc), fp, StackWords { pc, fp: pc }),
        saved => {
            let fp = pc - usize::from(saved) * 8;
            (read(pc), read(fp), StackWords { pc, fp })
        }
    }
}
