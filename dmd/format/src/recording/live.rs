//! Blocks that were live when the recording started.

use super::numbers::{self, PayloadReader, zigzag};
use super::{MalformedPayload, RecordedBlock, natural_slop};

/// A block and its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LiveBlock {
    /// The start of the block.
    pub address: u64,
    /// The sizes and the stack of the block.
    pub block: RecordedBlock,
}

/// Encodes blocks into the payload of a chunk. Each block has a signed varint with its address minus the address of
/// the previous block. Then a varint contains twice the requested bytes, plus 1 if a varint with the slop follows. The
/// last signed varint is the block's stack minus the stack of the previous block.
#[derive(Debug, Default)]
pub struct LiveEncoder {
    address: u64,
    stack: u32,
    payload: Vec<u8>,
}

impl LiveEncoder {
    /// Makes an encoder with an empty payload.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block.
    pub fn push(&mut self, live: &LiveBlock) {
        let block = live.block;
        let has_slop = block.slop != natural_slop(block.requested);
        let payload = &mut self.payload;
        numbers::push(payload, zigzag(live.address.wrapping_sub(self.address) as i64));
        numbers::push(payload, block.requested << 1 | u64::from(has_slop));
        if has_slop {
            numbers::push(payload, block.slop);
        }
        numbers::push(payload, zigzag(i64::from(block.stack) - i64::from(self.stack)));
        (self.address, self.stack) = (live.address, block.stack);
    }

    /// The payload so far.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Empties the payload for the next chunk.
    pub fn clear(&mut self) {
        (self.address, self.stack) = (0, 0);
        self.payload.clear();
    }
}

/// The blocks of a chunk. The iterator ends after an error.
#[derive(Clone, Debug)]
pub struct LiveDecoder<'a> {
    payload: PayloadReader<'a>,
    address: u64,
    stack: u32,
}

impl<'a> LiveDecoder<'a> {
    /// Reads a live chunk's payload.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { payload: PayloadReader::new(payload), address: 0, stack: 0 }
    }

    fn live(&mut self) -> Result<LiveBlock, MalformedPayload> {
        let payload = &mut self.payload;
        self.address = self.address.wrapping_add(payload.signed()? as u64);
        let word = payload.number()?;
        let requested = word >> 1;
        let slop = if word & 1 == 1 { payload.number()? } else { natural_slop(requested) };
        let stack = i64::from(self.stack).checked_add(payload.signed()?);
        let stack = stack.and_then(|stack| u32::try_from(stack).ok());
        self.stack = stack.ok_or_else(|| payload.malformed("the number of a stack is out of range"))?;
        let block = RecordedBlock { requested, slop, stack: self.stack };
        Ok(LiveBlock { address: self.address, block })
    }
}

impl Iterator for LiveDecoder<'_> {
    type Item = Result<LiveBlock, MalformedPayload>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.payload.is_empty() {
            return None;
        }
        let live = self.live();
        if live.is_err() {
            self.payload.end();
        }
        Some(live)
    }
}
