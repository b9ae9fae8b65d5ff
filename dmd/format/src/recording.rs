//! The format of DMD's recordings: every allocation, reallocation and end of a block, with its time, thread and stack.
//!
//! This module has no process and no file of its own. DMD's engine encodes with it while a program runs, and readers
//! decode with it. Input is untrusted: each decoder has bounds, returns [`MalformedPayload`] with the place, and never
//! panics.
//!
//! ```
//! use dmd_format::recording::*;
//!
//! // A thread's events, in one chunk.
//! let mut payload = vec![0; EVENT_BUFFER];
//! let mut encoder = Box::new(EventEncoder::new());
//! encoder.start(&mut payload, 1, 1000);
//! let block = RecordedBlock { requested: 100, slop: 4, stack: 7 };
//! encoder.push(&mut payload, &BlockEvent { tick: 1003, address: 0x5000, what: BlockAction::Begin(block) });
//! encoder.push(&mut payload, &BlockEvent { tick: 1010, address: 0x5000, what: BlockAction::End(None) });
//! let mut file = MAGIC.to_vec();
//! push_chunk(&mut file, ChunkKind::Events, &payload[..encoder.len()]);
//!
//! let mut chunks = ChunkReader::open(&file[..])?;
//! let chunk = chunks.next().unwrap()?;
//! assert_eq!(chunk.kind(), Some(ChunkKind::Events));
//! let events: Result<Vec<BlockEvent>, MalformedPayload> = EventDecoder::new(chunk.payload)?.collect();
//! assert_eq!(events?[0].what, BlockAction::Begin(block));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The file
//!
//! A file starts with [`MAGIC`], whose last byte is the version. Chunks follow up to the end of the file. A chunk
//! has a header of [`CHUNK_HEADER`] bytes, all numbers little-endian, and a payload:
//!
//! | bytes | |
//! |---|---|
//! | 0 | the kind: [`ChunkKind`] |
//! | 1 | flags: bit 0 is set if the payload is one block of LZ4 |
//! | 2, 3 | 0 |
//! | 4 to 7 | the length of the payload once decompressed, at most [`MOST_PAYLOAD`] |
//! | 8 to 11 | the length of the payload in the file |
//! | 12 to 15 | CRC-32 (that of gzip) of bytes 0 to 11 and of the payload in the file |
//!
//! Readers skip chunks of unknown kinds. If a file has no [`ChunkKind::End`], its process was killed or its disk was
//! full. All chunks before the cut are valid.
//!
//! # Numbers
//!
//! A *varint* has 1 to 9 bytes. The number of zero bits below the lowest one bit of the first byte, plus one, is the
//! number of bytes, and the number is above that bit: 7 bits in one byte, 14 in two, 56 in eight. After a first byte
//! of 0, the number has 8 bytes. A *signed* varint maps 0, -1, 1, -2 to 0, 1, 2, 3.
//!
//! # Time
//!
//! A *tick* is a reading of the processor's clock, some ten nanoseconds long. It is the same clock in all threads.
//! Each clock chunk has a tick and the nanoseconds since the start of the recording at that tick; readers interpolate.
//! The tick of an allocation was read after the allocator returned, the tick of an end before the allocator was
//! called. So if several threads use one address, the order of ticks is that of the events; at equal ticks of several
//! threads ends come before begins. The events of one thread stay in their order.
//!
//! # Events
//!
//! An events chunk belongs to one thread and is decoded alone; the chunks of one thread are in order. It starts with
//! the number of the thread and the tick that the first event's tick counts from, both varints. Thread 0 stands for
//! events whose thread is not known: those of signal handlers that interrupted the engine. Events have:
//!
//! - one byte: in bits 0 and 1 the kind (0 begin, 1 end, 2 end by a move, 3 other), in bit 2 whether the stack is the
//!   predicted one, above them the ticks since the event before; 31 says that a varint with the ticks beyond 31
//!   follows;
//! - for kind 3 one more byte: 0 for a block that is back, since the allocator did not move it; 1 and 2 for an end and
//!   an end by a move with the block; 16 plus the address modulo 16, which holds for the next event and is 0 for
//!   all others; this one is no event, and has neither ticks nor what follows here;
//! - a signed varint: the address divided by 16, less that of the event before (0 before the first one);
//! - for begins, blocks that are back, and ends with the block: the block.
//!
//! A block is a varint with twice the requested bytes, plus 1 if a varint with the slop follows; without one the slop
//! is that of glibc's `malloc` ([`natural_slop`]). Then, unless the stack is the predicted one, there is a signed
//! varint: the id of the stack, less that of the block before (0 before the first). A decoder predicts that a stack
//! comes after another one if it came after it last time, by a table of [`PREDICTIONS`] stacks that the stack before,
//! modulo that number, selects, and whose entries are 0 at first.
//!
//! A move is an end by a move, followed by the next begin of the same thread. A begin at the address of a live block
//! says that the program freed that block where DMD did not see it.
//!
//! # Order
//!
//! The chunks of different threads are in no order. [`ChunkKind::Watermark`] has a tick: events of later chunks have
//! that tick or a later one, except if the system stopped a thread for a tenth of a second in the middle of an event.
//! So a reader that merges threads keeps the events since the last watermark only.
//!
//! A node of the tree of stacks precedes the events that use it. [`StackNode::pc`] is a return address; nodes with a
//! `pc` below [`FIRST_PC`] are no frames, but separate stacks of times when different libraries lay at one
//! address. The last modules chunk holds for the whole file. `live` chunks come before all events: they have the
//! blocks that were alive when the recording started.

mod chunk;
mod events;
mod facts;
mod live;
mod modules;
mod nodes;
mod numbers;
mod threads;

use core::fmt;

pub use chunk::{ChunkError, ChunkKind, ChunkReader, RecordingChunk, frame_chunk, most_framed, push_chunk};
pub use events::{BlockAction, BlockEvent, EventDecoder, EventEncoder};
pub use facts::{ClockReading, RecordedProcess, RecordingEnd, Watermark};
pub use live::{LiveBlock, LiveDecoder, LiveEncoder};
pub use modules::{RecordedModule, decode_modules, encode_modules};
pub use nodes::{NodeDecoder, NodeEncoder, StackNode};
pub use threads::{RecordedThread, decode_threads, encode_threads};

/// The first bytes of a recording: a name, and the version of the format.
pub const MAGIC: [u8; 8] = *b"DMDREC\n\x01";

/// The length of a chunk's header in bytes.
pub const CHUNK_HEADER: usize = 16;

/// The most bytes of a chunk's payload.
pub const MOST_PAYLOAD: usize = 4 << 20;

/// The bytes of an events chunk's payload that a writer has room for.
pub const EVENT_BUFFER: usize = 64 << 10;

/// The number of stacks that a decoder of events predicts from.
pub const PREDICTIONS: usize = 1024;

pub use super::tables::FIRST_PC;

/// The sizes and the stack of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordedBlock {
    /// Bytes that the program asked for.
    pub requested: u64,
    /// Usable bytes beyond those.
    pub slop: u64,
    /// The node of the tree of stacks where the block was allocated; 0 if its stack is not known.
    pub stack: u32,
}

/// Usable bytes beyond the requested ones of a small block of glibc's `malloc`.
#[inline]
pub fn natural_slop(requested: u64) -> u64 {
    let usable = (requested.saturating_add(8 + 15) & !15).saturating_sub(8).max(24);
    usable.saturating_sub(requested)
}

/// A fault of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedPayload {
    /// The place in the payload, in bytes.
    pub offset: usize,
    /// The fault.
    pub reason: &'static str,
}

impl fmt::Display for MalformedPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of the chunk", self.reason, self.offset)
    }
}

impl core::error::Error for MalformedPayload {}
