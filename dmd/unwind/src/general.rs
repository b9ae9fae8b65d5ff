//! The general step: computes the caller's registers from the registers of a frame, by the frame's whole row. The
//! walker uses it if the cache's rules are not enough.

use crate::arch::{FP, RETURN_ADDRESS, Registers, SP, strip};
use crate::eh_frame::{EhFrameSections, FunctionEntry};
use crate::expression::evaluate;
use crate::registers::KnownRegisters;
use crate::row::{Cfa, SavedRegister, UnwindRow, row_at};
use crate::stack::StackMemory;

/// A frame with all registers whose values are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeneralFrame {
    pub(crate) pc: usize,
    /// Whether `pc` is an interrupted instruction, and not an instruction after a call.
    pub(crate) exact: bool,
    pub(crate) registers: KnownRegisters,
}

/// The reason why a general step did not find the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkStop {
    /// The outermost frame.
    End,
    /// There is no rule, or the rule cannot be applied: it needs an unknown register or memory outside of the stack.
    Lost,
}

impl GeneralFrame {
    /// A frame with a known pc, stack pointer and frame pointer. Its other registers are unknown, because steps by
    /// rules follow only these three values.
    pub(crate) fn partial(pc: usize, sp: usize, fp: usize) -> GeneralFrame {
        let mut known = GeneralFrame { pc, exact: false, registers: KnownRegisters::NONE };
        known.registers.set(SP, sp);
        known.registers.set(FP, fp);
        known
    }

    /// An empty frame for the registers that the kernel saved for a signal handler.
    pub(crate) fn interrupted() -> GeneralFrame {
        GeneralFrame { pc: 0, exact: true, registers: KnownRegisters::NONE }
    }

    /// A frame with all registers that a function keeps for its caller, as `registers` captured them.
    pub(crate) fn captured(registers: &Registers) -> GeneralFrame {
        let mut known = GeneralFrame::partial(registers.pc, registers.sp, registers.fp);
        for (register, value) in registers.others() {
            known.registers.set(register, value);
        }
        known
    }

    /// The address for the look-up of this frame's rules.
    pub(crate) fn lookup(&self) -> usize {
        if self.exact { self.pc } else { self.pc.wrapping_sub(1) }
    }

    /// Changes this frame into the caller's frame.
    pub(crate) fn step(
        &mut self,
        sections: &EhFrameSections<'_>,
        memory: &mut StackMemory<'_>,
    ) -> Result<(), WalkStop> {
        let pc = self.lookup();
        let fde = sections.find(pc).ok_or(WalkStop::Lost)?;
        let row = row_at(&fde, pc).ok_or(WalkStop::Lost)?;
        if row.saved[RETURN_ADDRESS] == SavedRegister::Undefined {
            return Err(WalkStop::End);
        }
        *self = self.caller(&fde, &row, sections, memory).ok_or(WalkStop::Lost)?;
        if self.pc == 0 { Err(WalkStop::End) } else { Ok(()) }
    }

    fn caller(
        &self,
        fde: &FunctionEntry<'_>,
        row: &UnwindRow,
        sections: &EhFrameSections<'_>,
        memory: &mut StackMemory<'_>,
    ) -> Option<GeneralFrame> {
        if fde.cie.return_address != RETURN_ADDRESS as u64 {
            return None;
        }
        let cfa = match row.cfa {
            Cfa::Register { register, offset } => {
                self.registers.get(usize::from(register))?.wrapping_add(offset as usize)
            }
            Cfa::Expression(position) => evaluate(sections.frames, position, None, &self.registers, memory)?,
        };
        let signal = fde.cie.signal;
        let mut caller = GeneralFrame { pc: 0, exact: signal, registers: KnownRegisters::NONE };
        caller.registers.set(SP, cfa);
        for (register, saved) in row.saved.iter().enumerate() {
            let value = match *saved {
                // The CFA is the caller's stack pointer, unless the row has another rule for the stack pointer.
                SavedRegister::Unspecified | SavedRegister::Kept if register == SP => continue,
                SavedRegister::Unspecified | SavedRegister::Kept => self.registers.get(register),
                SavedRegister::Undefined => None,
                SavedRegister::At(offset) => memory.read(cfa.wrapping_add_signed(offset as isize)),
                SavedRegister::Value(offset) => Some(cfa.wrapping_add_signed(offset as isize)),
                SavedRegister::Register(source) => self.registers.get(usize::from(source)),
                SavedRegister::AtExpression(position) => {
                    evaluate(sections.frames, position, Some(cfa), &self.registers, memory)
                        .and_then(|at| memory.read(at))
                }
                SavedRegister::ValueExpression(position) => {
                    evaluate(sections.frames, position, Some(cfa), &self.registers, memory)
                }
            };
            if let Some(value) = value {
                caller.registers.set(register, value);
            }
        }
        caller.pc = strip(caller.registers.get(RETURN_ADDRESS)?);
        // Stacks grow down, so a caller's frame is at a higher address, unless a signal handler ran on its own stack.
        let sp = caller.registers.get(SP)?;
        let moved = sp > self.registers.get(SP)? || (sp == self.registers.get(SP)? && self.pc != caller.pc);
        if signal {
            memory.enter(sp)?;
        } else if !moved {
            return None;
        }
        Some(caller)
    }
}
