//! Instructions of 64-bit Arm. Each has 4 bytes.

/// The distance in bytes that a branch can reach in both directions.
pub const BRANCH_REACH: u64 = 128 << 20;

const BRANCH: u32 = 0x1400_0000;
const BRANCH_BITS: u32 = 0x7c00_0000;
const OFFSET_26: u32 = 0x03ff_ffff;

const ADRP: u32 = 0x9000_0000;
const ADR: u32 = 0x1000_0000;
const ADR_BITS: u32 = 0x9f00_0000;
const ADD: u32 = 0x9100_0000;
/// The bits of `add xD, xN, #imm12` without a shift.
const ADD_BITS: u32 = 0xffc0_0000;

fn sign_extend(value: u32, bits: u32) -> i64 {
    i64::from((value << (32 - bits)).cast_signed() >> (32 - bits))
}

/// The address to which `b` or `bl` at an address branches; `None` for other instructions.
pub fn branch_target(instruction: u32, at: u64) -> Option<u64> {
    (instruction & BRANCH_BITS == BRANCH)
        .then(|| at.wrapping_add_signed(sign_extend(instruction & OFFSET_26, 26) * 4))
}

/// Whether an instruction may jump elsewhere in its function: `b`, `b.cond`, `cbz`, `tbz` and the like, and `br`.
pub fn is_jump(instruction: u32) -> bool {
    instruction & 0xfc00_0000 == BRANCH
        || instruction & 0xff00_0000 == 0x5400_0000
        || instruction & 0x7c00_0000 == 0x3400_0000
        || instruction & 0xffff_fc1f == 0xd61f_0000
}

/// The same branch, to another address; `None` if it cannot reach the address.
pub fn with_branch_target(instruction: u32, at: u64, target: u64) -> Option<u32> {
    let words = target.wrapping_sub(at).cast_signed() / 4;
    let fits = target & 3 == 0 && (-(1 << 25)..1 << 25).contains(&words);
    fits.then_some(instruction & !OFFSET_26 | words as u32 & OFFSET_26)
}

/// The page whose address `adrp` at an address computes, and the number of its register.
pub fn page_target(instruction: u32, at: u64) -> Option<(u64, u32)> {
    if instruction & ADR_BITS != ADRP {
        return None;
    }
    let pages = sign_extend(instruction >> 5 & 0x7ffff, 19) << 2 | i64::from(instruction >> 29 & 3);
    Some(((at & !0xfff).wrapping_add_signed(pages << 12), instruction & 31))
}

/// The address that `adr` at an address computes.
pub fn near_target(instruction: u32, at: u64) -> Option<u64> {
    if instruction & ADR_BITS != ADR {
        return None;
    }
    let bytes = sign_extend(instruction >> 5 & 0x7ffff, 19) << 2 | i64::from(instruction >> 29 & 3);
    Some(at.wrapping_add_signed(bytes))
}

/// The bytes that `add` adds to a register, and the number of that register.
pub fn added_bytes(instruction: u32) -> Option<(u64, u32)> {
    (instruction & ADD_BITS == ADD).then(|| (u64::from(instruction >> 10 & 0xfff), instruction >> 5 & 31))
}

/// The register that an instruction writes. The instruction is a load, or computes with general purpose registers; for
/// other instructions, the result is `None`. This approximation is sufficient between `adrp` and its `add`.
pub fn written_register(instruction: u32) -> Option<u32> {
    let is_data = instruction & 0x1c00_0000 == 0x1000_0000 || instruction & 0x0e00_0000 == 0x0a00_0000;
    let is_load = instruction & 0x0e40_0000 == 0x0840_0000;
    (is_data || is_load).then_some(instruction & 31)
}

/// The same `adrp`, for the page of another address; `None` if it cannot reach the page.
pub fn with_page(instruction: u32, at: u64, target: u64) -> Option<u32> {
    let pages = (target >> 12).wrapping_sub(at >> 12).cast_signed();
    let fits = (-(1 << 20)..1 << 20).contains(&pages);
    fits.then(|| {
        let pages = pages as u32;
        instruction & 0x9f00_001f | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5
    })
}

/// The same `add`, with the position of an address in its page.
pub fn with_added(instruction: u32, target: u64) -> u32 {
    instruction & !(0xfff << 10) | (target as u32 & 0xfff) << 10
}

/// The size of a [`stub`] in bytes.
pub const STUB_BYTES: usize = 24;

/// Code that jumps to any address. It may be the target of an indirect branch in a guarded page (`bti`).
pub fn stub(target: u64) -> [u8; STUB_BYTES] {
    let mut code = [0; STUB_BYTES];
    // bti c; ldr x16, target; br x16
    for (place, instruction) in code.chunks_exact_mut(4).zip([0xd503_245f_u32, 0x5800_0070, 0xd61f_0200]) {
        place.copy_from_slice(&instruction.to_le_bytes());
    }
    code[16..].copy_from_slice(&target.to_le_bytes());
    code
}
