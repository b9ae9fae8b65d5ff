//! The format of DMD's recordings: every allocation, reallocation and end of a block, with its time, thread and stack.
//!
//! This module opens no file. DMD's engine encodes events with it while a program runs, and readers decode them. Input
//! is untrusted: each decoder has limits, returns [`MalformedPayload`] with the position of a fault, and never panics.
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
//! A file starts with [`MAGIC`], whose last byte is the version. Chunks follow up to the end of the file. A chunk has
//! a header of [`CHUNK_HEADER`] bytes and a payload. All numbers in the header are little-endian:
//!
//! | bytes | |
//! |---|---|
//! | 0 | the kind: [`ChunkKind`] |
//! | 1 | flags: bit 0 is set if the payload is one block of LZ4 |
//! | 2, 3 | 0 |
//! | 4 to 7 | the length of the decompressed payload, at most [`MOST_PAYLOAD`] |
//! | 8 to 11 | the length of the payload in the file |
//! | 12 to 15 | CRC-32 (as in gzip) of bytes 0 to 11 and of the payload in the file |
//!
//! Readers skip chunks of unknown kinds. If a file has no [`ChunkKind::End`], its process still runs or was killed, or
//! its disk was full. All complete chunks of such a file are valid.
//!
//! # Numbers
//!
//! A *varint* has 1 to 9 bytes. To get the number of bytes, count the zero bits below the lowest one bit of the first
//! byte, and add one. The bits above this one bit are the number: 7 bits in one byte, 14 in two, 56 in eight. After a
//! first byte of 0, the number has 8 bytes. A *signed* varint maps 0, -1, 1, -2 to 0, 1, 2, 3.
//!
//! # Time
//!
//! A *tick* is a time of a clock that counts about once in ten nanoseconds. All threads use the same clock. Each clock
//! chunk contains a tick and the nanoseconds from the start of the recording to that tick; readers interpolate.
//! For an allocation, the tick is read after the allocator has returned; for an end, before the allocator is called.
//! So if several threads use one address, the ticks are in the order of the events. If events of several threads have
//! the same tick, ends come before begins. The events of one thread keep their order.
//!
//! # Events
//!
//! An events chunk belongs to one thread and is decoded alone; the chunks of one thread are in order. The chunk starts
//! with the number of the thread and the tick from which the first event's tick counts; both are varints. Thread 0
//! contains events whose thread is unknown, such as events of signal handlers that interrupted the engine. An event
//! consists of:
//!
//! - one byte: bits 0 and 1 are the kind (0 begin, 1 end, 2 end by a move, 3 other). Bit 2 is set if the stack is the
//!   predicted one. The bits above are the ticks since the previous event; 31 means that a varint with the ticks beyond
//!   31 follows;
//! - for kind 3, one more byte. 0 is [`BlockAction::Back`]: the allocator did not move the block. 1 and 2 are an end
//!   and an end by a move, with the block. 16 plus the address modulo 16 applies to the next event; for all other
//!   events the address modulo 16 is 0. A byte above 16 is not an event: it has no ticks and none of the
//!   following parts;
//! - a signed varint: the address divided by 16, minus the same number of the previous event (0 for the first event);
//! - for begins, [`BlockAction::Back`], and ends with the block: the block.
//!
//! A block starts with a varint that contains twice the requested bytes, plus 1 if a varint with the slop follows.
//! Without that varint, the slop is the slop of glibc's `malloc` ([`natural_slop`]). If the stack is not the predicted
//! one, a signed varint follows: the id of the stack minus the stack id of the previous block (0 for the first
//! block). To predict, a decoder assumes that a stack is followed by the same stack as last time. It uses a table of
//! [`PREDICTIONS`] stacks. The index is the id of the previous stack, modulo `PREDICTIONS`. The entries are 0 at first.
//!
//! A move is an end by a move, followed by the next begin of the same thread. If a block begins at the address of a
//! live block, then the program has freed the live block in a way that DMD did not see.
//!
//! # Order
//!
//! The chunks of different threads are in no particular order. [`ChunkKind::Watermark`] contains a tick: events in
//! later chunks have this or a later tick. So a reader that merges threads keeps only the events since the last
//! watermark. The only exception: an event is earlier than the watermark if the system stopped its thread for a tenth
//! of a second in the middle of the event.
//!
//! A node of the tree of stacks precedes the events that use it. [`StackNode::pc`] is a return address. Nodes with a
//! `pc` below [`FIRST_PC`] are not frames: they separate stacks from times in which different libraries were loaded at
//! the same address. The last modules chunk is valid for the whole file. `live` chunks come before all events: they
//! contain the blocks that were live when the recording started.
//!
//! # Mappings
//!
//! [`ChunkKind::Mappings`] contains the mappings that the program made and removed through the C library, in order of
//! time. A mapping whose tick is the tick of the start is older than the recording. Blocks may lie in mappings: an
//! allocator inside of the program calls `mmap`, too.

mod chunk;
mod events;
mod facts;
mod live;
mod mappings;
mod modules;
mod nodes;
mod numbers;
mod threads;

use core::fmt;

pub use chunk::{
    ChunkError, ChunkKind, ChunkReader, RecordingChunk, fill_buffer, frame_chunk, most_framed, push_chunk,
};
pub use events::{BlockAction, BlockEvent, EventDecoder, EventEncoder};
pub use facts::{ClockReading, RecordedProcess, RecordingEnd, Watermark};
pub use live::{LiveBlock, LiveDecoder, LiveEncoder};
pub use mappings::{MappingAction, MappingDecoder, MappingEncoder, MappingEvent};
pub use modules::{RecordedModule, decode_modules, encode_modules};
pub use nodes::{NodeDecoder, NodeEncoder, StackNode};
pub use threads::{RecordedThread, decode_threads, encode_threads};

/// The first bytes of a recording: a name, and the version of the format.
pub const MAGIC: [u8; 8] = *b"DMDREC\n\x01";

/// The length of a chunk's header in bytes.
pub const CHUNK_HEADER: usize = 16;

/// The maximum number of bytes of a chunk's payload.
pub const MOST_PAYLOAD: usize = 4 << 20;

/// The size of a writer's buffer for the payload of an events chunk, in bytes.
pub const EVENT_BUFFER: usize = 64 << 10;

/// The number of stacks in the table from which a decoder of events predicts the next stack.
pub const PREDICTIONS: usize = 1024;

pub use super::tables::FIRST_PC;

/// The sizes and the stack of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordedBlock {
    /// The bytes that the program requested.
    pub requested: u64,
    /// The usable bytes minus the requested bytes.
    pub slop: u64,
    /// The node of the tree of stacks at which the block was allocated; 0 if its stack is unknown.
    pub stack: u32,
}

/// The slop of a small block of glibc's `malloc`, in bytes.
#[inline]
pub fn natural_slop(requested: u64) -> u64 {
    let usable = (requested.saturating_add(8 + 15) & !15).saturating_sub(8).max(24);
    usable.saturating_sub(requested)
}

/// An error in the contents of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedPayload {
    /// The offset of the error in the payload, in bytes.
    pub offset: usize,
    /// The description of the error.
    pub reason: &'static str,
}

impl fmt::Display for MalformedPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of the chunk", self.reason, self.offset)
    }
}

impl core::error::Error for MalformedPayload {}
