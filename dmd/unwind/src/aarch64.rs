//! aarch64: its registers, their capture, and the packed rule of a usual frame.

use core::arch::asm;

use crate::walker::WalkStart;
use crate::words::StackWords;

/// The columns of DWARF: x0 to x30, sp. The column of the return address is x30.
pub(crate) const REGISTERS: usize = 32;
pub(crate) const FP: usize = 29;
pub(crate) const SP: usize = 31;
pub(crate) const RETURN_ADDRESS: usize = 30;

/// The start of a walk: a point inside a function, and all registers that functions keep for their callers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Registers {
    pub(crate) pc: usize,
    pub(crate) sp: usize,
    pub(crate) fp: usize,
    link: usize,
    /// The registers x19 to x28.
    kept: [usize; 10],
}

impl Registers {
    /// The registers of the function into which this is inlined. A walk from here passes the function's return address
    /// first.
    #[inline(always)]
    pub fn here() -> Registers {
        let mut registers = core::mem::MaybeUninit::<Registers>::uninit();
        // SAFETY: the assembly writes only the fourteen words of `registers` and one scratch register, which it
        // declares.
        unsafe {
            asm!(
                "mov {scratch}, sp",
                "str {scratch}, [{to}, #8]",
                "adr {scratch}, .",
                "str {scratch}, [{to}]",
                "stp x29, x30, [{to}, #16]",
                "stp x19, x20, [{to}, #32]",
                "stp x21, x22, [{to}, #48]",
                "stp x23, x24, [{to}, #64]",
                "stp x25, x26, [{to}, #80]",
                "stp x27, x28, [{to}, #96]",
                scratch = out(reg) _,
                to = in(reg) registers.as_mut_ptr(),
                options(nostack, preserves_flags),
            );
        }
        // SAFETY: the assembly above wrote all fourteen words, and any word is a valid register.
        unsafe { registers.assume_init() }
    }

    /// The kept registers except the stack and frame pointers, with their columns.
    pub(crate) fn others(&self) -> [(usize, usize); 11] {
        core::array::from_fn(|index| match index {
            10 => (RETURN_ADDRESS, self.link),
            _ => (19 + index, self.kept[index]),
        })
    }
}

/// The caller of a function, as the function finds it at its first instruction.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pc: usize,
}

impl Caller {
    /// `place` is the link register at the function's first instruction; only assembly can read it. `_fp` is ignored.
    #[inline(always)]
    pub fn new(place: usize, _fp: usize) -> Caller {
        Caller { pc: strip(place) }
    }

    #[inline(always)]
    pub(crate) fn begin(self) -> WalkStart {
        // A pc of 0 would make the walk pass on every frame. No frame has the pc 1.
        WalkStart::At(self.pc.max(1))
    }
}

/// Removes the signature that a return address may have in its upper bits; addresses of user space have 48 bits.
#[inline(always)]
pub(crate) fn strip(pc: usize) -> usize {
    pc & 0x0000_ffff_ffff_ffff
}

/// The code of the kernel's signal frame, which has no unwind rules: `mov x8, #139; svc #0`.
pub(crate) const SIGNAL_RETURN: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// The offset of the registers in the `rt_sigframe` at the stack pointer of a signal frame: a `siginfo_t` of 128
/// bytes, then a `ucontext_t` whose `mcontext_t` is at byte 176 and starts with a fault address.
const SIGNAL_REGISTERS: usize = 128 + 176 + 8;

/// The columns and offsets of the registers, from the stack pointer of a signal frame. The last entry is the pc, which
/// has no column.
pub(crate) const SIGNAL_CONTEXT: [(usize, usize); 33] = {
    let mut places = [(0, 0); 33];
    let mut register = 0;
    while register < 33 {
        places[register] = (register, SIGNAL_REGISTERS + register * 8);
        register += 1;
    }
    places
};

/// The bit of a packed rule that is set if the CFA counts from the frame pointer.
pub(crate) const FROM_FP: u16 = 1 << 14;

/// Packs a usual frame, which saves frame pointer and return address as a pair, into fifteen bits. Bit 14: the CFA
/// counts from the frame pointer. Bits 7 to 13: the distance of the CFA in pairs of words. Bits 0 to 6: the distance
/// from the CFA down to the frame pointer in pairs of words. The return address is one word above the frame pointer.
pub(crate) fn pack(from_fp: bool, cfa: u32, fp: u32, return_address: u32) -> Option<u16> {
    if fp != return_address + 1 || !fp.is_multiple_of(2) || fp > 0xfe || !cfa.is_multiple_of(2) || cfa > 0xfe
    {
        return None;
    }
    // A step from the stack pointer reads nothing below it.
    if !from_fp && cfa < fp {
        return None;
    }
    Some(if from_fp { FROM_FP } else { 0 } | (cfa as u16 / 2) << 7 | (fp as u16 / 2))
}

/// Unpacks a rule into the CFA and the distance from the CFA down to the lowest word that the step reads.
#[inline(always)]
pub(crate) fn unpack(rule: u16, sp: usize, fp: usize) -> (usize, usize) {
    let base = if rule & FROM_FP != 0 { fp } else { sp };
    let cfa = base.wrapping_add(usize::from(rule >> 7 & 0x7f) * 16);
    (cfa, usize::from(rule & 0x7f) * 16)
}

/// Reads the caller's pc and frame pointer from the lowest word that [`unpack`] names, and the word above it. Also
/// returns the words that it read.
#[inline(always)]
pub(crate) fn caller(
    rule: u16,
    cfa: usize,
    _fp: usize,
    read: impl Fn(usize) -> usize,
) -> (usize, usize, StackWords) {
    let fp = cfa - usize::from(rule & 0x7f) * 16;
    let pc = fp + 8;
    (read(pc), read(fp), StackWords { pc, fp })
}
