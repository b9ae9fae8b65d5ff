//! Nodes of the tree of stacks.

use super::MalformedPayload;
use super::numbers::{self, PayloadReader, zigzag};

/// A node of the tree of stacks. A stack is a node together with its ancestors, which are its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The number of the node, from 1.
    pub id: u32,
    /// The number of the caller's node; 0 for the outermost frame.
    pub parent: u32,
    /// The return address. A number below [`FIRST_PC`](super::FIRST_PC) is not a return address.
    pub pc: u64,
}

const ROOT: StackNode = StackNode { id: 0, parent: 0, pc: 0 };

/// Encodes nodes into the payload of a chunk. Each node consists of three signed varints: its number minus the
/// expected number (the number of the last node plus 1), its number minus its parent's number, and its return address
/// minus the last return address.
#[derive(Debug)]
pub struct NodeEncoder {
    last: StackNode,
    payload: Vec<u8>,
}

impl Default for NodeEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl NodeEncoder {
    /// Makes an encoder with an empty payload.
    pub fn new() -> Self {
        Self { last: ROOT, payload: Vec::new() }
    }

    /// Adds a node.
    pub fn push(&mut self, node: StackNode) {
        let expected = i64::from(self.last.id) + 1;
        numbers::push(&mut self.payload, zigzag(i64::from(node.id) - expected));
        numbers::push(&mut self.payload, zigzag(i64::from(node.id) - i64::from(node.parent)));
        numbers::push(&mut self.payload, zigzag(node.pc.wrapping_sub(self.last.pc) as i64));
        self.last = node;
    }

    /// The payload so far.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Empties the payload for the next chunk.
    pub fn clear(&mut self) {
        self.last = ROOT;
        self.payload.clear();
    }
}

/// The nodes of a chunk. The iterator ends after an error. The number of a parent may be larger than the node's
/// number.
#[derive(Clone, Debug)]
pub struct NodeDecoder<'a> {
    payload: PayloadReader<'a>,
    last: StackNode,
}

impl<'a> NodeDecoder<'a> {
    /// Reads a nodes chunk's payload.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { payload: PayloadReader::new(payload), last: ROOT }
    }

    fn node(&mut self) -> Result<StackNode, MalformedPayload> {
        let payload = &mut self.payload;
        let number = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
        let id = number((i64::from(self.last.id) + 1).checked_add(payload.signed()?));
        let id = id.ok_or_else(|| payload.malformed("the number of a node is out of range"))?;
        let parent = number(i64::from(id).checked_sub(payload.signed()?));
        let parent = parent.ok_or_else(|| payload.malformed("the number of a node is out of range"))?;
        let pc = self.last.pc.wrapping_add(payload.signed()? as u64);
        self.last = StackNode { id, parent, pc };
        Ok(self.last)
    }
}

impl Iterator for NodeDecoder<'_> {
    type Item = Result<StackNode, MalformedPayload>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.payload.is_empty() {
            return None;
        }
        let node = self.node();
        if node.is_err() {
            self.payload.end();
        }
        Some(node)
    }
}
