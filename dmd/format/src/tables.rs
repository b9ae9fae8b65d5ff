//! The layout of the tables of DMD's engine in memory. A reader finds the tables in a core file, or in the memory of
//! another process, and runs no code in that process.
//!
//! The engine builds its tables with the constants of this module, and `dmd_analyze::image` reads them. All numbers
//! are little-endian, and pointers have 8 bytes.
//!
//! # The header
//!
//! One header of [`HEADER`] bytes is at a multiple of 8 in the writable data of the program, or of `libdmd.so`:
//!
//! | bytes | |
//! |---|---|
//! | 0 to 15 | [`MAGIC`] |
//! | 16 to 23 | the address of the header itself; a copy of the bytes at another address is not a header |
//! | 24 to 27 | [`VERSION`]; a reader rejects other versions |
//! | 28 to 31 | the size of the header in bytes; later headers may be longer |
//! | 32 to 39 | the address of the phase, one byte; [`RECORDS_ALL`] while DMD records without a sample by bytes |
//! | 40 to 47 | the address of the size below which the engine samples blocks, 8 bytes; 0 if it records all blocks |
//! | 48 to 55 | the address of the root of plane 0 |
//! | 56 to 63 | the address of an array with the addresses of the roots of all planes; 0 for plane 0 |
//! | 64 to 71 | the address of an array with the addresses of the segments of stacks |
//! | 72 to 79 | the address of the number of stacks, 4 bytes |
//! | 80 to 87 | the address of a pointer to the threads; the pointer is 0 if the process is not a copy |
//!
//! Headers of [`HEADER_WITHOUT_THREADS`] bytes lack the last field.
//!
//! # Blocks
//!
//! Blocks whose addresses are equal modulo [`PLANES`] are in one plane. Each plane has a radix tree of three levels.
//! An address below 2^[`ADDRESS_BITS`] is the index: its bits above [`MIDDLE_BITS`] select a pointer to a middle in
//! the root, and its bits from [`LEAF_BITS`] up to [`MIDDLE_BITS`] select a pointer in that middle. A pointer is 0 if
//! the level below is missing.
//!
//! A middle has pointers to leaves, and after them as many pointers to chunks. A leaf is an array of lines, each for
//! 2^[`LINE_BITS`] bytes of heap. A line has [`CELLS`] words and the address of a further line for the same blocks, or
//! 0.
//!
//! A chunk has [`SLOTS`] numbers of 2 bytes, the address of a further chunk or 0, and as many slots of three words:
//! the word of a block, its requested bytes, and its slop. The number of a slot is the index of its place in the heap
//! of the leaf, plus one; 0 means that the slot is free. A place has 2^[`GRAIN_BITS`] bytes.
//!
//! A [`word`] describes a block, or contains a size of a wide block. If a block has a word in a line and another
//! word in a slot, the word in the line is valid.
//!
//! # Stacks
//!
//! A stack is a node with a number from 1. A segment has [`SEGMENT`] nodes of [`NODE`] bytes. The first 8 bytes of a
//! node are the return address. The next 4 bytes are the number of the caller's node, or 0. A return address below
//! [`FIRST_PC`] is not a frame.
//!
//! # Threads
//!
//! A copy of a process has one thread, and a table with the stack pointers of the process's threads. The table starts
//! with two numbers of 8 bytes: the number of rows of [`THREAD`] bytes, which follow, and the number of rows of
//! [`RECORDED`] bytes, which are at the end.
//!
//! The first rows come from the system. A row contains the number of a thread, its stack pointer, the address of its
//! next instruction (both 0 if the thread was running), and 16 bytes with its name, which ends in a 0.
//!
//! The last rows come from the engine, for threads that have allocated. The first row of a thread contains the thread
//! pointer, the number of frames, and an unused word. Then a row for each frame of the thread's last stack follows,
//! outermost first: the pc of the frame, its stack pointer, and the address of the word on the stack from which this
//! pc was read, or 0 if it is unknown. A frame still exists if the words of all outer frames are above the thread's
//! stack pointer and still contain the return addresses.

/// The first bytes of the header.
pub const MAGIC: [u8; 16] = *b"\xD3\x4DDMD's tables\r\n";

/// The version of this layout.
pub const VERSION: u32 = 1;

/// The size of the header in bytes.
pub const HEADER: usize = 88;

/// The size in bytes of a header without the field for threads.
pub const HEADER_WITHOUT_THREADS: usize = 80;

/// The size in bytes of a row with the system's data about a thread.
pub const THREAD: usize = 40;

/// The size of the field with the name of a thread, in bytes.
pub const THREAD_NAME: usize = 16;

/// The size in bytes of a row with the engine's data about a thread or a frame.
pub const RECORDED: usize = 24;

/// The phase in which the engine records without a sample by bytes.
pub const RECORDS_ALL: u8 = 2;

/// The logarithm of the size of a place at which a block may start, in bytes.
pub const GRAIN_BITS: u32 = 4;

/// The logarithm of the bytes of heap for each line.
pub const LINE_BITS: u32 = GRAIN_BITS + word::KEY_BITS;

/// The logarithm of the bytes of heap for each leaf, and for each chain of chunks.
pub const LEAF_BITS: u32 = 17;

/// The logarithm of the bytes of heap for each middle.
pub const MIDDLE_BITS: u32 = 31;

/// The number of bits of an address in the tables.
pub const ADDRESS_BITS: u32 = 48;

/// The number of planes.
pub const PLANES: usize = 1 << GRAIN_BITS;

/// The number of words in a line.
pub const CELLS: usize = 7;

/// The number of slots in a chunk.
pub const SLOTS: usize = 4;

/// The number of nodes in a segment.
pub const SEGMENT: usize = 1 << 14;

/// The size of a node in bytes.
pub const NODE: usize = 24;

/// The lowest return address. Smaller numbers in nodes are not return addresses.
pub const FIRST_PC: u64 = 1 << 16;

/// The bits of a word: tag 2, wide 1, sampled 1, marked 1, key 5, stack 25, slop 11, requested bytes 18.
///
/// The key is the number of the place at which the block starts in the heap of its line. A wide block has sizes that
/// do not fit: its word contains a fingerprint of them instead. The sizes are in two more words of the line with the
/// same key, or in the slot if the block has one.
pub mod word {
    /// The mask of the kind of a word.
    pub const TAG: u64 = 0b11;
    /// A live block.
    pub const LIVE: u64 = 0b01;
    /// A freed block, or no block.
    pub const FREED: u64 = 0b10;
    /// One of the two sizes of a wide block. Such a word does not describe a block.
    pub const SIZE: u64 = 0b11;
    /// Set if the sizes of the block are stored elsewhere.
    pub const WIDE: u64 = 1 << 2;
    /// In the word of a size: set if the size is the slop, clear if it is the requested bytes.
    pub const SLOP: u64 = 1 << 2;
    /// Set if the block also represents other blocks: the small blocks since the last sampled block, or the blocks that
    /// a sample by bytes left out.
    pub const SAMPLED: u64 = 1 << 3;
    /// Set if a reporter has reported the block.
    pub const MARKED: u64 = 1 << 4;
    /// The lowest bit of the key.
    pub const KEY_SHIFT: u32 = 5;
    /// The number of bits of the key.
    pub const KEY_BITS: u32 = 5;
    /// The mask of the key.
    pub const KEY: u64 = ((1 << KEY_BITS) - 1) << KEY_SHIFT;
    /// The lowest bit of a size in a separate word.
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

    /// The fingerprint of the sizes of a wide block. A reader uses it to check that sizes belong to a word. The word of
    /// a wide block contains the fingerprint in the bits in which other words contain the sizes.
    pub fn fingerprint(requested: u64, slop: u64) -> u64 {
        let mixed = requested.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ slop.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        mixed >> (u64::BITS - SLOP_BITS - REQUESTED_BITS)
    }
}
