//! The general step: from the registers of a frame to those of its caller, by its whole row. The walker takes it
//! where the packed rules of the cache do not reach.

use crate::arch::{FP, RETURN_ADDRESS, Registers, SP, strip};
use crate::eh_frame::{Fde, Sections};
use crate::expression::evaluate;
use crate::registers::KnownRegisters;
use crate::row::{Cfa, Row, Saved, row_at};
use crate::stack::Memory;

/// A frame, with all registers whose values are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeneralFrame {
    pub(crate) pc: usize,
    /// Is `pc` an interrupted instruction, rather than one behind a call?
    pub(crate) exact: bool,
    pub(crate) registers: KnownRegisters,
}

/// Why a general step did not find the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The outermost frame.
    End,
    /// A rule is odd, or needs a register that is not known, or memory that is not the stack's.
    Lost,
}

impl GeneralFrame {
    /// What is left in hand after steps by packed rules.
    pub(crate) fn partial(pc: usize, sp: usize, fp: usize) -> GeneralFrame {
        let mut known = GeneralFrame { pc, exact: false, registers: KnownRegisters::NONE };
        known.registers.set(SP, sp);
        known.registers.set(FP, fp);
        known
    }

    /// To be filled with the registers that a signal handler was given.
    pub(crate) fn interrupted() -> GeneralFrame {
        GeneralFrame { pc: 0, exact: true, registers: KnownRegisters::NONE }
    }

    /// All registers that a function keeps for its caller, as they were captured.
    pub(crate) fn captured(registers: &Registers) -> GeneralFrame {
        let mut known = GeneralFrame::partial(registers.pc, registers.sp, registers.fp);
        for (register, value) in registers.others() {
            known.registers.set(register, value);
        }
        known
    }

    /// The address by which this frame's rules are looked up.
    pub(crate) fn lookup(&self) -> usize {
        if self.exact { self.pc } else { self.pc.wrapping_sub(1) }
    }

    /// Becomes the caller's frame.
    pub(crate) fn step(&mut self, sections: &Sections<'_>, memory: &mut Memory<'_>) -> Result<(), Stop> {
        let pc = self.lookup();
        let fde = sections.find(pc).ok_or(Stop::Lost)?;
        let row = row_at(&fde, pc).ok_or(Stop::Lost)?;
        if row.saved[RETURN_ADDRESS] == Saved::Undefined {
            return Err(Stop::End);
        }
        *self = self.caller(&fde, &row, sections, memory).ok_or(Stop::Lost)?;
        if self.pc == 0 { Err(Stop::End) } else { Ok(()) }
    }

    fn caller(
        &self,
        fde: &Fde<'_>,
        row: &Row,
        sections: &Sections<'_>,
        memory: &mut Memory<'_>,
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
                // The CFA is the caller's stack pointer unless something else is said.
                Saved::Unspecified | Saved::Kept if register == SP => continue,
                Saved::Unspecified | Saved::Kept => self.registers.get(register),
                Saved::Undefined => None,
                Saved::At(offset) => memory.read(cfa.wrapping_add_signed(offset as isize)),
                Saved::Value(offset) => Some(cfa.wrapping_add_signed(offset as isize)),
                Saved::Register(source) => self.registers.get(usize::from(source)),
                Saved::AtExpression(position) => {
                    evaluate(sections.frames, position, Some(cfa), &self.registers, memory)
                        .and_then(|at| memory.read(at))
                }
                Saved::ValueExpression(position) => {
                    evaluate(sections.frames, position, Some(cfa), &self.registers, memory)
                }
            };
            if let Some(value) = value {
                caller.registers.set(register, value);
            }
        }
        caller.pc = strip(caller.registers.get(RETURN_ADDRESS)?);
        // Stacks grow down: a caller is higher, unless a signal handler ran on a stack of its own.
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
