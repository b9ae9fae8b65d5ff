//! The known values of a frame's registers.

use crate::arch::REGISTERS;

/// Values of registers, indexed by DWARF's columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownRegisters {
    values: [usize; REGISTERS],
    /// One bit for each known register.
    mask: u64,
}

impl KnownRegisters {
    /// No register is known.
    pub(crate) const NONE: Self = Self { values: [0; REGISTERS], mask: 0 };

    /// The value of a register; `None` if it is unknown.
    pub(crate) fn get(&self, register: usize) -> Option<usize> {
        let value = self.values.get(register)?;
        (self.mask >> register & 1 != 0).then_some(*value)
    }

    /// Sets the value of a register. Ignores a column that the walker does not follow.
    pub(crate) fn set(&mut self, register: usize, value: usize) {
        if let Some(place) = self.values.get_mut(register) {
            *place = value;
            self.mask |= 1 << register;
        }
    }
}
