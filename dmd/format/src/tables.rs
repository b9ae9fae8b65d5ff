//! The layout of the tables of DMD's engine in memory. A reader finds them in a core file, or in the memory of another
//! process, and runs no code there.
//!
//! The engine builds its tables by the constants of this module, and `dmd_analyze::image` reads them. All numbers are
//! little-endian, and pointers have 8 bytes.
//!
//! # The header
//!
//! One header of [`HEADER`] bytes lies at a multiple of 8 in the writable data of the program, or of `libdmd.so`:
//!
//! | bytes | |
//! |---|---|
//! | 0 to 15 | [`MAGIC`] |
//! | 16 to 23 | the address of the header itself, so that a copy of the bytes elsewhere is not a header |
//! | 24 to 27 | [`VERSION`]; a reader refuses others |
//! | 28 to 31 | the number of the header's bytes; later ones may have more |
//! | 32 to 39 | the address of the phase, one byte; [`RECORDS_ALL`] while the engine records every block |
//! | 40 to 47 | the address of the bound below which the engine samples blocks, 8 bytes; 0 if it records all |
//! | 48 to 55 | the address of the root of plane 0 |
//! | 56 to 63 | the address of the addresses of the roots of all planes, of which the first is 0 |
//! | 64 to 71 | the address of the addresses of the segments of stacks |
//! | 72 to 79 | the address of the number of stacks, 4 bytes |
//! | 80 to 87 | the address of the address of the threads; that is 0 in a process that is not a copy. Some headers end before |
//!
//! # Blocks
//!
//! Blocks whose addresses are equal modulo [`PLANES`] are in one plane. Each plane has a radix tree of three levels,
//! which an address below 2^[`ADDRESS_BITS`] indexes: its bits above [`MIDDLE_BITS`] are the index of a pointer to a middle in
//! the root, and its bits from [`LEAF_BITS`] up to [`MIDDLE_BITS`] are the index of a pointer in that middle. A pointer is 0 where
//! the level below is missing. A middle has pointers to leaves, and after them as many pointers to chunks. A leaf is an array of lines, each for 2^[`LINE_BITS`] bytes of heap. A line has [`CELLS`] words and the
//! address of a further line for the same blocks, or 0. A chunk has [`SLOTS`] numbers of 2 bytes, the address of a further chunk
//! or 0, and as many slots of three words: the word of a block, its requested bytes, and its slop. A slot's number is the index
//! of its place in the leaf's stretch of heap plus one; 0 says that the slot is free. A place has 2^[`GRAIN_BITS`] bytes.
//!
//! A [`word`] describes a block, or contains a size of a wide block. If a block has a word in a line and another in a slot,
//! the word in the line is valid.
//!
//! # Stacks
//!
//! A stack is a node with a number from 1 on. A segment has [`SEGMENT`] nodes of [`NODE`] bytes, of which the first 8 are
//! the return address and the next 4 the number of the caller's node, or 0. A return address below [`FIRST_PC`] is not
//! a frame.
//!
//! # Threads
//!
//! A copy of a process has one thread, and knows where the threads of the process were. Two numbers of 8 bytes come first: of
//! rows of [`THREAD`] bytes, which follow, and of rows of [`RECORDED`] bytes, which come last.
//!
//! The first rows are of the system: the number of a thread, its stack pointer, the address of its next instruction (both 0 if
//! the thread ran at that moment), and 16 bytes with its name, which ends at a 0. The last rows are of the engine, for threads that
//! have allocated: the thread pointer, the number of frames, and a word without a meaning; then a row for each frame of the last stack,
//! outermost first: the address at which it continues, its stack pointer, and the address of the return address that leads to
//! it, or 0 where that is not known. A frame is still there if all return addresses further out are at their places, above the
//! stack pointer.

/// The first bytes of the header.
pub const MAGIC: [u8; 16] = *b"\xD3\x4DDMD's tables\r\n";

/// The version of this layout.
pub const VERSION: u32 = 1;

/// The bytes of the header.
pub const HEADER: usize = 88;

/// The bytes of a header that does not have the threads.
pub const HEADER_WITHOUT_THREADS: usize = 80;

/// The bytes of a row of the system about a thread.
pub const THREAD: usize = 40;

/// The bytes of the name of a thread.
pub const THREAD_NAME: usize = 16;

/// The bytes of a row of the engine about a thread or a frame.
pub const RECORDED: usize = 24;

/// The phase in which the engine records every block.
pub const RECORDS_ALL: u8 = 2;

/// The logarithm of the bytes of a place where a block may start.
pub const GRAIN_BITS: u32 = 4;

/// The logarithm of the bytes of heap for each line.
pub const LINE_BITS: u32 = GRAIN_BITS + word::KEY_BITS;

/// The logarithm of the bytes of heap for each leaf, and for each chain of chunks.
pub const LEAF_BITS: u32 = 17;

/// The logarithm of the bytes of heap for each middle.
pub const MIDDLE_BITS: u32 = 31;

/// The bits of an address that has a place in the tables.
pub const ADDRESS_BITS: u32 = 48;

/// The number of planes.
pub const PLANES: usize = 1 << GRAIN_BITS;

/// The words of a line.
pub const CELLS: usize = 7;

/// The slots of a chunk.
pub const SLOTS: usize = 4;

/// The nodes of a segment.
pub const SEGMENT: usize = 1 << 14;

/// The bytes of a node.
pub const NODE: usize = 24;

/// The lowest return address. Smaller numbers in nodes are not return addresses.
pub const FIRST_PC: u64 = 1 << 16;

/// The bits of a word: tag 2, wide 1, sampled 1, marked 1, key 5, stack 25, slop 11, requested bytes 18.
///
/// The key is the number of the place where the block starts in the stretch of heap of its line. A wide block has
/// sizes that do not fit: its word has a fingerprint of them in their place, and two more words of the line with the
/// same key have them, unless the block has a slot.
pub mod word {
    /// The bits of the kind of a word.
    pub const TAG: u64 = 0b11;
    /// A live block.
    pub const LIVE: u64 = 0b01;
    /// A block that was freed, or no block.
    pub const FREED: u64 = 0b10;
    /// Not a block, but one of the two sizes of a wide block.
    pub const SIZE: u64 = 0b11;
    /// The sizes of the block are elsewhere.
    pub const WIDE: u64 = 1 << 2;
    /// In the word of a size: the size is the slop, not the requested bytes.
    pub const SLOP: u64 = 1 << 2;
    /// The block stands for all small blocks since the last sampled one.
    pub const SAMPLED: u64 = 1 << 3;
    /// A reporter reported the block.
    pub const MARKED: u64 = 1 << 4;
    /// The lowest bit of the key.
    pub const KEY_SHIFT: u32 = 5;
    /// The number of bits of the key.
    pub const KEY_BITS: u32 = 5;
    /// The bits of the key.
    pub const KEY: u64 = ((1 << KEY_BITS) - 1) << KEY_SHIFT;
    /// The lowest bit of a size in a word of its own.
    pub const SIZE_SHIFT: u32 = KEY_SHIFT + KEY_BITS;
    /// The lowest bit of the stack.
    pub const STACK_SHIFT: u32 = KEY_SHIFT + KEY_BITS;
    /// The number of bits of the stack.
    pub const STACK_BITS: u32 = 25;
    /// The lowest bit of the slop, and of a wide block's fingerprint.
    pub const SLOP_SHIFT: u32 = STACK_SHIFT + STACK_BITS;
    /// The number of bits of the slop.
    pub const SLOP_BITS: u32 = 11;
    /// The lowest bit of the requested bytes.
    pub const REQUESTED_SHIFT: u32 = SLOP_SHIFT + SLOP_BITS;
    /// The number of bits of the requested bytes.
    pub const REQUESTED_BITS: u32 = 18;
    const _: () = assert!(REQUESTED_SHIFT + REQUESTED_BITS == u64::BITS);

    /// The fingerprint of the sizes of a wide block, by which a reader knows whether sizes belong to a word. It fills the bits
    /// that are too few for the sizes.
    pub fn fingerprint(requested: u64, slop: u64) -> u64 {
        let mixed = requested.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ slop.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        mixed >> (u64::BITS - SLOP_BITS - REQUESTED_BITS)
    }
}
