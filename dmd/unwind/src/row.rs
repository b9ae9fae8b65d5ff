//! Interprets call frame instructions: from an FDE to the row for one pc.
//!
//! The interpreter is limited in memory (a row is small, and at most [`REMEMBERED`] rows nest) and in time (each step
//! takes at least one byte of the entry). Any unknown instruction ends it with `None`.

use crate::arch::REGISTERS;
use crate::eh_frame::FunctionEntry;
use crate::reader::ByteReader;

/// The rule for the canonical frame address (CFA), which is the stack pointer at the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cfa {
    Register {
        register: u8,
        offset: i64,
    },
    /// The result of a DWARF expression at this position in the section.
    Expression(u32),
}

/// The place where the caller's value of a register is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SavedRegister {
    /// No instruction names the register, so the ABI decides. For the registers that a walk needs, this means "kept".
    Unspecified,
    Undefined,
    Kept,
    /// In memory, at this distance from the CFA.
    At(i32),
    /// The value is the CFA plus this offset.
    Value(i32),
    Register(u8),
    /// In memory, at the address that the expression at this position computes.
    AtExpression(u32),
    /// The value is the result of the expression at this position.
    ValueExpression(u32),
}

/// One row of the table that an FDE describes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnwindRow {
    pub(crate) cfa: Cfa,
    pub(crate) saved: [SavedRegister; REGISTERS],
}

/// The maximum depth of nested `remember_state`. Compilers nest it once.
const REMEMBERED: usize = 3;

/// The row of `fde` for `pc`.
pub(crate) fn row_at(fde: &FunctionEntry<'_>, pc: usize) -> Option<UnwindRow> {
    let row = UnwindRow {
        cfa: Cfa::Register { register: u8::MAX, offset: 0 },
        saved: [SavedRegister::Unspecified; REGISTERS],
    };
    let mut machine =
        RowMachine { fde, row, initial: row, location: fde.start, remembered: [row; REMEMBERED], depth: 0 };
    machine.run(fde.cie.instructions, pc)?;
    machine.initial = machine.row;
    machine.run(fde.instructions, pc)?;
    Some(machine.row)
}

struct RowMachine<'a, 'b> {
    fde: &'b FunctionEntry<'a>,
    row: UnwindRow,
    /// The row after the CIE's instructions. The instruction `restore` takes values from this row.
    initial: UnwindRow,
    location: usize,
    remembered: [UnwindRow; REMEMBERED],
    depth: usize,
}

impl RowMachine<'_, '_> {
    /// Runs until the instructions end or describe only code after `pc`.
    fn run(&mut self, mut code: ByteReader<'_>, pc: usize) -> Option<()> {
        while !code.is_at_end() {
            let byte = code.u8()?;
            let low = byte & 0x3f;
            match byte >> 6 {
                1 => self.advance(u64::from(low)),
                2 => {
                    let offset = code.uleb()? as i64;
                    self.save(u64::from(low), SavedRegister::At(self.factored(offset)?));
                }
                3 => self.restore(u64::from(low)),
                _ => self.extended(low, &mut code)?,
            }
            if self.location > pc {
                break;
            }
        }
        Some(())
    }

    fn extended(&mut self, opcode: u8, code: &mut ByteReader<'_>) -> Option<()> {
        match opcode {
            // nop
            0x00 => {}
            // set_loc
            0x01 => {
                let location = code.pointer(self.fde.cie.encoding, 0)?;
                self.location = self.location.max(location);
            }
            // advance_loc1, 2, 4, MIPS_advance_loc8
            0x02 => self.advance(u64::from(code.u8()?)),
            0x03 => self.advance(u64::from(code.u16()?)),
            0x04 => self.advance(u64::from(code.u32()?)),
            0x1d => self.advance(code.u64()?),
            // offset_extended
            0x05 => {
                let register = code.uleb()?;
                let offset = code.uleb()? as i64;
                self.save(register, SavedRegister::At(self.factored(offset)?));
            }
            // restore_extended
            0x06 => {
                let register = code.uleb()?;
                self.restore(register);
            }
            // undefined, same_value
            0x07 => self.save(code.uleb()?, SavedRegister::Undefined),
            0x08 => self.save(code.uleb()?, SavedRegister::Kept),
            // register
            0x09 => {
                let register = code.uleb()?;
                let source = u8::try_from(code.uleb()?).ok()?;
                self.save(register, SavedRegister::Register(source));
            }
            // remember_state
            0x0a => {
                *self.remembered.get_mut(self.depth)? = self.row;
                self.depth += 1;
            }
            // restore_state
            0x0b => {
                self.depth = self.depth.checked_sub(1)?;
                self.row = *self.remembered.get(self.depth)?;
            }
            // def_cfa, def_cfa_sf
            0x0c => {
                self.row.cfa =
                    Cfa::Register { register: register(code)?, offset: i64::try_from(code.uleb()?).ok()? }
            }
            0x12 => {
                let register = register(code)?;
                let offset = code.sleb()?.checked_mul(self.fde.cie.data_align)?;
                self.row.cfa = Cfa::Register { register, offset };
            }
            // def_cfa_register
            0x0d => match self.row.cfa {
                Cfa::Register { offset, .. } => {
                    self.row.cfa = Cfa::Register { register: register(code)?, offset }
                }
                Cfa::Expression(_) => return None,
            },
            // def_cfa_offset, def_cfa_offset_sf
            0x0e | 0x13 => {
                let offset = match opcode {
                    0x0e => i64::try_from(code.uleb()?).ok()?,
                    _ => code.sleb()?.checked_mul(self.fde.cie.data_align)?,
                };
                match self.row.cfa {
                    Cfa::Register { register, .. } => self.row.cfa = Cfa::Register { register, offset },
                    Cfa::Expression(_) => return None,
                }
            }
            // def_cfa_expression
            0x0f => self.row.cfa = Cfa::Expression(expression(code)?),
            // expression, val_expression
            0x10 => {
                let register = code.uleb()?;
                self.save(register, SavedRegister::AtExpression(expression(code)?));
            }
            0x16 => {
                let register = code.uleb()?;
                self.save(register, SavedRegister::ValueExpression(expression(code)?));
            }
            // offset_extended_sf, GNU_negative_offset_extended
            0x11 => {
                let register = code.uleb()?;
                let offset = code.sleb()?;
                self.save(register, SavedRegister::At(self.factored(offset)?));
            }
            0x2f => {
                let register = code.uleb()?;
                let offset = (code.uleb()? as i64).checked_neg()?;
                self.save(register, SavedRegister::At(self.factored(offset)?));
            }
            // val_offset, val_offset_sf
            0x14 => {
                let register = code.uleb()?;
                let offset = code.uleb()? as i64;
                self.save(register, SavedRegister::Value(self.factored(offset)?));
            }
            0x15 => {
                let register = code.uleb()?;
                let offset = code.sleb()?;
                self.save(register, SavedRegister::Value(self.factored(offset)?));
            }
            // On aarch64: toggles whether the return address is signed. The walker strips the signature from every
            // return address, so there is nothing to record.
            #[cfg(target_arch = "aarch64")]
            0x2d => {}
            // GNU_args_size: only for landing pads.
            0x2e => {
                code.uleb()?;
            }
            _ => return None,
        }
        Some(())
    }

    fn advance(&mut self, delta: u64) {
        let delta = delta.wrapping_mul(self.fde.cie.code_align) as usize;
        self.location = self.location.saturating_add(delta);
    }

    fn factored(&self, offset: i64) -> Option<i32> {
        i32::try_from(offset.checked_mul(self.fde.cie.data_align)?).ok()
    }

    /// Sets a register's rule. Ignores columns that the walk does not follow, such as vector registers.
    fn save(&mut self, register: u64, saved: SavedRegister) {
        if let Some(slot) =
            usize::try_from(register).ok().and_then(|register| self.row.saved.get_mut(register))
        {
            *slot = saved;
        }
    }

    fn restore(&mut self, register: u64) {
        let initial = usize::try_from(register).ok().and_then(|register| self.initial.saved.get(register));
        if let Some(&saved) = initial {
            self.save(register, saved);
        }
    }
}

fn register(code: &mut ByteReader<'_>) -> Option<u8> {
    u8::try_from(code.uleb()?).ok()
}

/// Skips the expression at `code`. Returns its position, at which its length starts.
fn expression(code: &mut ByteReader<'_>) -> Option<u32> {
    let position = u32::try_from(code.position()).ok()?;
    let len = code.uleb()?;
    code.split(usize::try_from(len).ok()?)?;
    Some(position)
}
