//! The general step: from the registers of a frame to those of its caller, by its whole row. It is taken
//! where the packed rules of the cache do not reach.

use super::arch::{FP, REGISTERS, RETURN_ADDRESS, Registers, SP, strip};
use super::eh_frame::{Fde, Sections};
use super::expression::evaluate;
use super::row::{Cfa, Row, Saved, row_at};
use super::stack::Memory;

/// A frame, with all registers whose values are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) pc: usize,
    /// Is `pc` an interrupted instruction, rather than one behind a call?
    pub(super) exact: bool,
    values: [usize; REGISTERS],
    /// A bit for each register that is known.
    mask: u64,
}

/// Why a general step did not find the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The outermost frame.
    End,
    /// A rule is odd, or needs a register that is not known, or memory that is not the stack's.
    Lost,
}

impl Known {
    /// What is left in hand after steps by packed rules.
    pub(super) fn partial(pc: usize, sp: usize, fp: usize) -> Known {
        let mut known = Known { pc, exact: false, values: [0; REGISTERS], mask: 0 };
        known.set(SP, sp);
        known.set(FP, fp);
        known
    }

    /// To be filled with the registers that a signal handler was given.
    pub(super) fn interrupted() -> Known {
        Known { pc: 0, exact: true, values: [0; REGISTERS], mask: 0 }
    }

    /// All registers that a function keeps for its caller, as they were captured.
    pub(super) fn captured(registers: &Registers) -> Known {
        let mut known = Known::partial(registers.pc, registers.sp, registers.fp);
        for (register, value) in registers.others() {
            known.set(register, value);
        }
        known
    }

    pub(super) fn get(&self, register: usize) -> Option<usize> {
        let value = self.values.get(register)?;
        (self.mask >> register & 1 != 0).then_some(*value)
    }

    pub(super) fn set(&mut self, register: usize, value: usize) {
        if let Some(place) = self.values.get_mut(register) {
            *place = value;
            self.mask |= 1 << register;
        }
    }

    /// The address by which this frame's rules are looked up.
    pub(super) fn lookup(&self) -> usize {
        if self.exact { self.pc } else { self.pc.wrapping_sub(1) }
    }

    /// Becomes the caller's frame.
    pub(super) fn step(&mut self, sections: &Sections<'_>, memory: &mut Memory<'_>) -> Result<(), Stop> {
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
    ) -> Option<Known> {
        if fde.cie.return_address != RETURN_ADDRESS as u64 {
            return None;
        }
        let cfa = match row.cfa {
            Cfa::Register { register, offset } => {
                self.get(usize::from(register))?.wrapping_add(offset as usize)
            }
            Cfa::Expression(position) => evaluate(sections.frames, position, None, self, memory)?,
        };
        let signal = fde.cie.signal;
        let mut caller = Known { pc: 0, exact: signal, values: [0; REGISTERS], mask: 0 };
        caller.set(SP, cfa);
        for (register, saved) in row.saved.iter().enumerate() {
            let value = match *saved {
                // The CFA is the caller's stack pointer unless something else is said.
                Saved::Unspecified | Saved::Kept if register == SP => continue,
                Saved::Unspecified | Saved::Kept => self.get(register),
                Saved::Undefined => None,
                Saved::At(offset) => memory.read(cfa.wrapping_add_signed(offset as isize)),
                Saved::Value(offset) => Some(cfa.wrapping_add_signed(offset as isize)),
                Saved::Register(source) => self.get(usize::from(source)),
                Saved::AtExpression(position) => evaluate(sections.frames, position, Some(cfa), self, memory)
                    .and_then(|at| memory.read(at)),
                Saved::ValueExpression(position) => {
                    evaluate(sections.frames, position, Some(cfa), self, memory)
                }
            };
            if let Some(value) = value {
                caller.set(register, value);
            }
        }
        caller.pc = strip(caller.get(RETURN_ADDRESS)?);
        // Stacks grow down: a caller is higher, unless a signal handler ran on a stack of its own.
        let sp = caller.get(SP)?;
        let moved = sp > self.get(SP)? || (sp == self.get(SP)? && self.pc != caller.pc);
        if signal {
            memory.enter(sp)?;
        } else if !moved {
            return None;
        }
        Some(caller)
    }
}
