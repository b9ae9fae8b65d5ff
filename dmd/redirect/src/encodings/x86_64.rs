//! Instructions of x86-64. Calls, jumps and `lea` contain the distance to their target in 4 bytes.

/// The distance in bytes that a field of 4 bytes can reach in both directions, minus room for the pages around the
/// target.
pub const DISTANCE_REACH: u64 = (2 << 30) - (1 << 20);

/// Whether the bytes of an instruction are enough to know that the instruction refers to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The bytes around the distance belong to one form of an instruction: a chance match is practically impossible.
    Certain,
    /// A single byte precedes the distance. Only decoding shows whether it starts an instruction.
    NeedsDecoding,
}

/// Whether an instruction may contain a distance at `at`: the 4 bytes from there to the instruction's end.
pub fn distance_form(code: &[u8], at: usize) -> Option<Certainty> {
    let before = |count: usize| at.checked_sub(count).and_then(|at| code.get(at)).copied();
    let last = before(1)?;
    match last {
        // call, jmp: the linker writes them with a prefix or followed by `nop` in the place of a longer instruction
        0xe8 if before(2) == Some(0x67) || code.get(at + 4) == Some(&0x90) => Some(Certainty::Certain),
        0xe9 if code.get(at + 4) == Some(&0x90) => Some(Certainty::Certain),
        0xe8 | 0xe9 => Some(Certainty::NeedsDecoding),
        // conditional jumps
        0x80..=0x8f if before(2) == Some(0x0f) => Some(Certainty::NeedsDecoding),
        // lea, with a 64-bit register
        _ if last & 0xc7 == 5 && before(2) == Some(0x8d) && matches!(before(3), Some(0x48 | 0x4c)) => {
            Some(Certainty::Certain)
        }
        _ => None,
    }
}

/// The address that a distance at an address leads to.
pub fn target(distance: [u8; 4], at: u64) -> u64 {
    at.wrapping_add(4).wrapping_add_signed(i64::from(i32::from_le_bytes(distance)))
}

/// The distance from an address to a target; `None` if it is too long.
pub fn distance(at: u64, target: u64) -> Option<[u8; 4]> {
    let bytes = target.wrapping_sub(at.wrapping_add(4)).cast_signed();
    i32::try_from(bytes).ok().map(i32::to_le_bytes)
}

/// The size of a [`stub`] in bytes.
pub const STUB_BYTES: usize = 16;

/// Code that jumps to any address.
pub fn stub(target: u64) -> [u8; STUB_BYTES] {
    let mut code = [0xcc; STUB_BYTES];
    // jmp [rip + 0]
    code[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
    code[6..14].copy_from_slice(&target.to_le_bytes());
    code
}

/// Whether an instruction of the function that starts at the start of `code` ends at `end`. The check decodes the
/// lengths of all instructions before `end`.
pub fn is_instruction_end(code: &[u8], end: usize) -> bool {
    let mut at = 0;
    while at < end {
        match code.get(at..).and_then(length) {
            Some(length) => at += length,
            None => return false,
        }
    }
    at == end
}

/// The number of bytes of the instructions at the start of `code` that each call runs: up to the first jump. A jump that
/// always jumps is one of them; a conditional jump is not.
pub fn straight_bytes(code: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = code.get(at..).unwrap_or_default();
        let Some(length) = length(rest) else { return at };
        match (rest[0], rest.get(1)) {
            (0x70..=0x7f | 0xe0..=0xe3, _) | (0x0f, Some(0x80..=0x8f)) => return at,
            (0xc2 | 0xc3 | 0xcc | 0xe9 | 0xeb, _) => return at + length,
            (0xff, Some(modrm)) if matches!(modrm >> 3 & 7, 4 | 5) => return at + length,
            _ => at += length,
        }
    }
}

/// The operands after the opcode of an instruction.
#[derive(Clone, Copy)]
struct Operands {
    has_modrm: bool,
    immediate: usize,
}

const fn operands(has_modrm: bool, immediate: usize) -> Operands {
    Operands { has_modrm, immediate }
}

/// The number of bytes of the instruction at the start of `code`; `None` if it is invalid in 64-bit mode.
pub fn length(code: &[u8]) -> Option<usize> {
    let (mut at, mut short, mut short_address, mut wide) = (0, false, false, false);
    loop {
        match code.get(at)? {
            0x66 => short = true,
            0x67 => short_address = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0xf2 | 0xf3 => {}
            _ => break,
        }
        at += 1;
    }
    if let rex @ 0x40..=0x4f = code.get(at)? {
        wide = rex & 8 != 0;
        at += 1;
    }
    let immediate = if short && !wide { 2 } else { 4 };
    let opcode = *code.get(at)?;
    at += 1;
    let operands = match opcode {
        0x0f => {
            let second = *code.get(at)?;
            at += 1;
            match second {
                0x38 => {
                    at += 1;
                    operands(true, 0)
                }
                0x3a => {
                    at += 1;
                    operands(true, 1)
                }
                _ => after_0f(second)?,
            }
        }
        // VEX and EVEX: the field with the map of opcodes selects the immediate operand.
        0xc5 => {
            let second = *code.get(at + 1)?;
            at += 2;
            after_0f(second)?
        }
        0xc4 | 0x62 => {
            let map = code.get(at)? & 7;
            at += if opcode == 0xc4 { 2 } else { 3 };
            let second = *code.get(at)?;
            at += 1;
            match map {
                1 => after_0f(second)?,
                3 => operands(true, 1),
                _ => operands(true, 0),
            }
        }
        0xb8..=0xbf if wide => operands(false, 8),
        0xa0..=0xa3 => operands(false, if short_address { 4 } else { 8 }),
        0xf6 | 0xf7 => {
            let tests = code.get(at)? & 0x30 == 0;
            operands(
                true,
                if !tests {
                    0
                } else if opcode == 0xf6 {
                    1
                } else {
                    immediate
                },
            )
        }
        _ => one_byte(opcode, immediate)?,
    };
    let modrm = if operands.has_modrm { modrm_length(code.get(at..)?)? } else { 0 };
    let length = at + modrm + operands.immediate;
    (length <= 15 && length <= code.len()).then_some(length)
}

fn one_byte(opcode: u8, immediate: usize) -> Option<Operands> {
    Some(match opcode {
        0x00..=0x3f => match opcode & 7 {
            0..=3 => operands(true, 0),
            4 => operands(false, 1),
            5 => operands(false, immediate),
            _ => return None,
        },
        0x50..=0x5f | 0x90..=0x99 | 0x9b..=0x9f | 0xa4..=0xa7 | 0xaa..=0xaf => operands(false, 0),
        0x63 | 0x84..=0x8f | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe | 0xff => operands(true, 0),
        0x68 | 0xa9 | 0xb8..=0xbf => operands(false, immediate),
        0x69 | 0x81 | 0xc7 => operands(true, immediate),
        0x6a | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe0..=0xe7 | 0xeb => operands(false, 1),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => operands(true, 1),
        0x6c..=0x6f | 0xc3 | 0xc9 | 0xcb | 0xcc | 0xcf | 0xd7 | 0xec..=0xef => operands(false, 0),
        0xf1 | 0xf4 | 0xf5 | 0xf8..=0xfd => operands(false, 0),
        0xc2 | 0xca => operands(false, 2),
        0xc8 => operands(false, 3),
        0xe8 | 0xe9 => operands(false, 4),
        _ => return None,
    })
}

fn after_0f(opcode: u8) -> Option<Operands> {
    Some(match opcode {
        0x05..=0x09 | 0x0b | 0x0e | 0x30..=0x35 | 0x37 | 0x77 | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf => {
            operands(false, 0)
        }
        0x80..=0x8f => operands(false, 4),
        0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => operands(true, 1),
        0x04 | 0x0a | 0x0c | 0x0f | 0x24..=0x27 | 0x36 | 0x39 | 0x3b..=0x3f => return None,
        _ => operands(true, 0),
    })
}

/// The number of bytes of a `modrm` byte and of the address that follows it.
fn modrm_length(code: &[u8]) -> Option<usize> {
    let modrm = *code.first()?;
    let (mode, base) = (modrm >> 6, modrm & 7);
    if mode == 3 {
        return Some(1);
    }
    let (bytes, base) = if base == 4 { (2, *code.get(1)? & 7) } else { (1, base) };
    // Base 5 without a distance: an absolute address, or one relative to the next instruction.
    let distance = match mode {
        0 if base == 5 => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    Some(bytes + distance)
}
