//! Mappings that the program made and removed.

use super::MalformedPayload;
use super::numbers::{self, PayloadReader, zigzag};

/// A change of the program's mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappingEvent {
    /// The time.
    pub tick: u64,
    /// The first address.
    pub start: u64,
    /// The length in bytes. Addresses and lengths are multiples of 4096.
    pub bytes: u64,
    /// The change.
    pub action: MappingAction,
}

/// The change of a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MappingAction {
    /// The program mapped the range. It replaces all mappings of these addresses.
    Map {
        /// The node of the tree of stacks at which the program called `mmap`; 0 if its stack is unknown.
        stack: u32,
        /// Whether the range has the contents of a file.
        is_file: bool,
    },
    /// The program removed the range, which may have parts of several mappings, and addresses without a mapping.
    Unmap,
}

const UNMAP: u64 = 0;
const MAP: u64 = 1;
const MAP_FILE: u64 = 2;

const PAGE_BITS: u32 = 12;

/// Encodes changes of mappings into the payload of a chunk. A change starts with a varint: 0 for a removed range, 1 for
/// a mapping without a file, 2 for a mapping of a file. A signed varint has the ticks since the previous change (since 0
/// for the first), and another one the start minus the previous start, in units of 4096 bytes. A varint has the length in
/// these units. A mapping ends with a signed varint: its stack minus the stack of the previous mapping.
#[derive(Debug, Default)]
pub struct MappingEncoder {
    tick: u64,
    page: u64,
    stack: u32,
    payload: Vec<u8>,
}

impl MappingEncoder {
    /// Makes an encoder with an empty payload.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a change.
    pub fn push(&mut self, event: &MappingEvent) {
        let page = event.start >> PAGE_BITS;
        let kind = match event.action {
            MappingAction::Unmap => UNMAP,
            MappingAction::Map { is_file: false, .. } => MAP,
            MappingAction::Map { is_file: true, .. } => MAP_FILE,
        };
        numbers::push(&mut self.payload, kind);
        numbers::push(&mut self.payload, zigzag(event.tick.wrapping_sub(self.tick) as i64));
        numbers::push(&mut self.payload, zigzag(page.wrapping_sub(self.page) as i64));
        numbers::push(&mut self.payload, event.bytes >> PAGE_BITS);
        if let MappingAction::Map { stack, .. } = event.action {
            numbers::push(&mut self.payload, zigzag(i64::from(stack) - i64::from(self.stack)));
            self.stack = stack;
        }
        (self.tick, self.page) = (event.tick, page);
    }

    /// The payload so far.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Empties the payload for the next chunk.
    pub fn clear(&mut self) {
        *self = Self { payload: core::mem::take(&mut self.payload), ..Self::default() };
        self.payload.clear();
    }
}

/// The changes of a chunk. The iterator ends after an error.
#[derive(Clone, Debug)]
pub struct MappingDecoder<'a> {
    payload: PayloadReader<'a>,
    tick: u64,
    page: u64,
    stack: u32,
}

impl<'a> MappingDecoder<'a> {
    /// Reads a mappings chunk's payload.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { payload: PayloadReader::new(payload), tick: 0, page: 0, stack: 0 }
    }

    fn event(&mut self) -> Result<MappingEvent, MalformedPayload> {
        let payload = &mut self.payload;
        let kind = payload.number()?;
        self.tick = self.tick.wrapping_add(payload.signed()? as u64);
        self.page = self.page.wrapping_add(payload.signed()? as u64);
        let (page, pages) = (self.page, payload.number()?);
        let most = u64::MAX >> PAGE_BITS;
        if page.checked_add(pages).is_none_or(|end| end > most) {
            return Err(payload.malformed("a mapping ends after the last address"));
        }
        let action = match kind {
            UNMAP => MappingAction::Unmap,
            MAP | MAP_FILE => {
                let stack = i64::from(self.stack).checked_add(payload.signed()?);
                let stack = stack.and_then(|stack| u32::try_from(stack).ok());
                self.stack =
                    stack.ok_or_else(|| payload.malformed("the number of a stack is out of range"))?;
                MappingAction::Map { stack: self.stack, is_file: kind == MAP_FILE }
            }
            _ => return Err(payload.malformed("a change of mappings has an unknown kind")),
        };
        Ok(MappingEvent { tick: self.tick, start: page << PAGE_BITS, bytes: pages << PAGE_BITS, action })
    }
}

impl Iterator for MappingDecoder<'_> {
    type Item = Result<MappingEvent, MalformedPayload>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.payload.is_empty() {
            return None;
        }
        let event = self.event();
        if event.is_err() {
            self.payload.end();
        }
        Some(event)
    }
}
