//! The bytes of blocks with a tag that reports have counted: a reporter's report wins over a tag.

use crate::allocator::tags::{TagNumber, TaggedBlock};

/// Bytes by tag.
#[derive(Debug, Default)]
pub(crate) struct TaggedBytes {
    by_tag: Vec<usize>,
}

impl TaggedBytes {
    /// Adds a block, if one was found.
    #[cold]
    pub(crate) fn add_found(&mut self, block: Option<TaggedBlock>) {
        if let Some(block) = block {
            self.add_bytes(block.tag.into(), block.bytes);
        }
    }

    /// Adds the bytes of `other`, which is empty then.
    pub(crate) fn append(&mut self, other: &mut Self) {
        for (tag, bytes) in other.by_tag.drain(..).enumerate() {
            self.add_bytes(tag, bytes);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.by_tag.clear();
    }

    pub(crate) fn of(&self, tag: TagNumber) -> usize {
        self.by_tag.get(usize::from(tag)).copied().unwrap_or(0)
    }

    fn add_bytes(&mut self, tag: usize, bytes: usize) {
        if bytes > 0 {
            if tag >= self.by_tag.len() {
                self.by_tag.resize(tag + 1, 0);
            }
            self.by_tag[tag] = self.by_tag[tag].saturating_add(bytes);
        }
    }
}
