//! The step from one pc, packed into a word. The walker compiles it from a row of the call frame information.

use crate::arch::{FP, RETURN_ADDRESS, SP};
use crate::eh_frame::EhFrameSections;
use crate::row::{Cfa, SavedRegister, UnwindRow, row_at};

/// The rule for one pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnwindRule {
    /// The CFA is the stack or frame pointer plus a constant, and the saved values are at constant distances below it.
    Usual(UsualStep),
    /// The outermost frame.
    End,
    /// Only the general step can handle the row.
    Odd,
    /// No unwind information covers this pc.
    Uncovered,
}

/// A usual step. Distances are in words of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsualStep {
    /// Whether the CFA counts from the frame pointer, and not from the stack pointer.
    pub(crate) from_fp: bool,
    pub(crate) cfa: u32,
    /// The distance from the CFA down to the saved frame pointer; 0 if the function does not change the frame pointer.
    pub(crate) fp: u32,
    /// The distance from the CFA down to the return address.
    pub(crate) return_address: u32,
}

const CFA_BITS: u32 = 22;
const SAVED_BITS: u32 = 11;

impl UnwindRule {
    /// Compiles the rule at `pc` from the module's unwind information.
    pub(crate) fn compile(sections: &EhFrameSections<'_>, pc: usize) -> UnwindRule {
        let Some(fde) = sections.find(pc) else { return UnwindRule::Uncovered };
        let Some(row) = row_at(&fde, pc) else { return UnwindRule::Odd };
        if row.saved[RETURN_ADDRESS] == SavedRegister::Undefined {
            return UnwindRule::End;
        }
        if fde.cie.signal || fde.cie.return_address != RETURN_ADDRESS as u64 {
            return UnwindRule::Odd;
        }
        usual(&row).map_or(UnwindRule::Odd, UnwindRule::Usual)
    }

    /// The rule as a word of at most 48 bits, never 0.
    pub(crate) fn to_word(self) -> u64 {
        match self {
            UnwindRule::Usual(usual) => {
                let mut word = u64::from(usual.cfa);
                word = word << SAVED_BITS | u64::from(usual.fp);
                word = word << SAVED_BITS | u64::from(usual.return_address);
                word << 4 | u64::from(usual.from_fp) << 3 | 1
            }
            UnwindRule::End => 2,
            UnwindRule::Odd => 3,
            UnwindRule::Uncovered => 4,
        }
    }

    /// Decodes a word of [`UnwindRule::to_word`].
    #[inline(always)]
    pub(crate) fn from_word(word: u64) -> UnwindRule {
        let field = |shift: u32, bits: u32| (word >> shift) as u32 & ((1 << bits) - 1);
        match word & 7 {
            1 => UnwindRule::Usual(UsualStep {
                from_fp: word & 8 != 0,
                return_address: field(4, SAVED_BITS),
                fp: field(4 + SAVED_BITS, SAVED_BITS),
                cfa: field(4 + 2 * SAVED_BITS, CFA_BITS),
            }),
            2 => UnwindRule::End,
            3 => UnwindRule::Odd,
            _ => UnwindRule::Uncovered,
        }
    }
}

fn usual(row: &UnwindRow) -> Option<UsualStep> {
    let Cfa::Register { register, offset } = row.cfa else { return None };
    let from_fp = match usize::from(register) {
        SP => false,
        FP => true,
        _ => return None,
    };
    // The caller's stack pointer must be the CFA, which is the usual case.
    if !matches!(row.saved[SP], SavedRegister::Unspecified | SavedRegister::Kept) {
        return None;
    }
    let fp = match row.saved[FP] {
        // If the frame pointer is undefined, the caller does not use it as a frame pointer.
        SavedRegister::Unspecified | SavedRegister::Kept | SavedRegister::Undefined => 0,
        SavedRegister::At(offset) => words_below(i64::from(offset))?,
        _ => return None,
    };
    let SavedRegister::At(return_address) = row.saved[RETURN_ADDRESS] else { return None };
    let return_address = words_below(i64::from(return_address))?;
    let cfa = words_below(offset.checked_neg()?)?;
    let fits = cfa < 1 << CFA_BITS && fp < 1 << SAVED_BITS && return_address < 1 << SAVED_BITS;
    fits.then_some(UsualStep { from_fp, cfa, fp, return_address })
}

/// The number of words in a negative multiple of 8.
fn words_below(offset: i64) -> Option<u32> {
    let bytes = u32::try_from(offset.checked_neg()?).ok()?;
    (bytes != 0 && bytes % 8 == 0).then_some(bytes / 8)
}
