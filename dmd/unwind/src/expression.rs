//! Evaluates the DWARF expressions that call frame information uses: in `.plt` entries, functions that realign their
//! stack, and the frames of signal handlers.

use crate::reader::{ByteReader, ByteSpan};
use crate::registers::KnownRegisters;
use crate::stack::StackMemory;

/// The maximum number of operations. No compiler writes as many. The limit ends loops.
const MAX_OPERATIONS: usize = 256;
const DEPTH: usize = 16;

/// The value of the expression at `position` of `frames`. `first` is on the expression's stack at the start: the CFA,
/// for expressions that start with a value.
pub(crate) fn evaluate(
    frames: ByteSpan<'_>,
    position: u32,
    first: Option<usize>,
    registers: &KnownRegisters,
    memory: &mut StackMemory<'_>,
) -> Option<usize> {
    let mut code = frames.reader_at(frames.address.wrapping_add(position as usize))?;
    let len = code.uleb()?;
    let mut code = code.split(usize::try_from(len).ok()?)?;
    let start = code.position();
    let mut stack = ExpressionStack { values: [0; DEPTH], len: 0 };
    if let Some(first) = first {
        stack.push(first)?;
    }
    for _ in 0..MAX_OPERATIONS {
        if code.is_at_end() {
            return stack.pop();
        }
        step(&mut code, start, &mut stack, registers, memory)?;
    }
    None
}

struct ExpressionStack {
    values: [usize; DEPTH],
    len: usize,
}

impl ExpressionStack {
    fn push(&mut self, value: usize) -> Option<()> {
        *self.values.get_mut(self.len)? = value;
        self.len += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<usize> {
        self.len = self.len.checked_sub(1)?;
        self.values.get(self.len).copied()
    }

    /// The value at the position `index` below the top.
    fn peek(&self, index: usize) -> Option<usize> {
        let place = self.len.checked_sub(index.checked_add(1)?)?;
        self.values.get(place).copied()
    }
}

fn step(
    code: &mut ByteReader<'_>,
    start: usize,
    stack: &mut ExpressionStack,
    registers: &KnownRegisters,
    memory: &mut StackMemory<'_>,
) -> Option<()> {
    let opcode = code.u8()?;
    let value = match opcode {
        // addr
        0x03 => code.u64()? as usize,
        // deref
        0x06 => memory.read(stack.pop()?)?,
        // const1u to const8s
        0x08 => usize::from(code.u8()?),
        0x09 => code.u8()? as i8 as usize,
        0x0a => usize::from(code.u16()?),
        0x0b => code.u16()? as i16 as usize,
        0x0c => code.u32()? as usize,
        0x0d => code.u32()? as i32 as usize,
        0x0e | 0x0f => code.u64()? as usize,
        // constu, consts
        0x10 => code.uleb()? as usize,
        0x11 => code.sleb()? as usize,
        // dup, over, pick
        0x12 => stack.peek(0)?,
        0x14 => stack.peek(1)?,
        0x15 => stack.peek(usize::from(code.u8()?))?,
        // drop
        0x13 => {
            stack.pop()?;
            return Some(());
        }
        // swap
        0x16 => {
            let (top, second) = (stack.pop()?, stack.pop()?);
            stack.push(top)?;
            second
        }
        // rot
        0x17 => {
            let (top, second, third) = (stack.pop()?, stack.pop()?, stack.pop()?);
            stack.push(top)?;
            stack.push(third)?;
            second
        }
        // abs, neg, not
        0x19 => (stack.pop()? as isize).unsigned_abs(),
        0x1f => stack.pop()?.wrapping_neg(),
        0x20 => !stack.pop()?,
        // plus_uconst
        0x23 => {
            let addend = code.uleb()? as usize;
            stack.pop()?.wrapping_add(addend)
        }
        0x1a..=0x1e | 0x21 | 0x22 | 0x24..=0x27 | 0x29..=0x2e => {
            let (right, left) = (stack.pop()?, stack.pop()?);
            binary(opcode, left, right)?
        }
        // bra, skip
        0x28 | 0x2f => {
            let distance = code.u16()? as i16;
            if opcode == 0x2f || stack.pop()? != 0 {
                let target = code.position().wrapping_add_signed(isize::from(distance));
                if target < start {
                    return None;
                }
                code.seek(target);
            }
            return Some(());
        }
        // lit0 to lit31
        0x30..=0x4f => usize::from(opcode - 0x30),
        // breg0 to breg31, bregx
        0x70..=0x8f => {
            let offset = code.sleb()? as usize;
            registers.get(usize::from(opcode - 0x70))?.wrapping_add(offset)
        }
        0x92 => {
            let register = usize::try_from(code.uleb()?).ok()?;
            let offset = code.sleb()? as usize;
            registers.get(register)?.wrapping_add(offset)
        }
        // deref_size
        0x94 => {
            let size = u32::from(code.u8()?);
            let word = memory.read(stack.pop()?)?;
            match size {
                1..8 => word & ((1 << (8 * size)) - 1),
                8 => word,
                _ => return None,
            }
        }
        // nop
        0x96 => return Some(()),
        _ => return None,
    };
    stack.push(value)
}

fn binary(opcode: u8, left: usize, right: usize) -> Option<usize> {
    let (signed_left, signed_right) = (left as isize, right as isize);
    let shift = u32::try_from(right).unwrap_or(u32::MAX);
    Some(match opcode {
        0x1a => left & right,
        0x1b => signed_left.checked_div(signed_right)? as usize,
        0x1c => left.wrapping_sub(right),
        0x1d => left.checked_rem(right)?,
        0x1e => left.wrapping_mul(right),
        0x21 => left | right,
        0x22 => left.wrapping_add(right),
        0x24 => left.checked_shl(shift).unwrap_or(0),
        0x25 => left.checked_shr(shift).unwrap_or(0),
        0x26 => (signed_left >> shift.min(usize::BITS - 1)) as usize,
        0x27 => left ^ right,
        0x29 => usize::from(signed_left == signed_right),
        0x2a => usize::from(signed_left >= signed_right),
        0x2b => usize::from(signed_left > signed_right),
        0x2c => usize::from(signed_left <= signed_right),
        0x2d => usize::from(signed_left < signed_right),
        0x2e => usize::from(signed_left != signed_right),
        _ => return None,
    })
}
