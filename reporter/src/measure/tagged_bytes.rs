//! For each tag, the bytes that reports have already counted. A reporter's report takes precedence over a tag.

use crate::allocator::tags::{TagNumber, TaggedBlock, tallies};

/// Allocators round the size of a block up by at most a quarter plus this many bytes.
const MOST_SLOP: usize = 24;

/// Bytes by tag. It takes one word if no block has a tag.
#[derive(Debug, Default)]
pub(crate) struct TaggedBytes(Option<Box<ByTag>>);

#[derive(Debug, Default)]
struct ByTag {
    /// The bytes counted by completed reports, indexed by tag.
    ended: Vec<usize>,
    /// The bytes counted by the current report, indexed by tag.
    current: Vec<usize>,
}

impl TaggedBytes {
    /// Counts a block for the current report, if `block` is not `None`.
    #[cold]
    pub(crate) fn add_found(&mut self, block: Option<TaggedBlock>) {
        if let Some(block) = block {
            let path = tallies::path_of(block.tag);
            add(&mut self.0.get_or_insert_default().current, path.into(), block.bytes);
        }
    }

    /// Counts `bytes` of a block for the current report, if `block` is not `None`. Counts the whole block if the
    /// difference can be slop.
    #[cold]
    pub(crate) fn add_part(&mut self, block: Option<TaggedBlock>, bytes: usize) {
        if let Some(mut block) = block {
            if block.bytes.saturating_sub(bytes) > bytes / 4 + MOST_SLOP {
                // Another value may own the remaining bytes, such as the other half of a split buffer.
                block.bytes = bytes;
            }
            self.add_found(Some(block));
        }
    }

    /// Completes the current report: its blocks stay counted.
    pub(crate) fn end_report(&mut self) {
        if let Some(by_tag) = &mut self.0 {
            for (tag, bytes) in by_tag.current.drain(..).enumerate() {
                add(&mut by_tag.ended, tag, bytes);
            }
        }
    }

    /// Drops the current report: its blocks are not counted.
    pub(crate) fn forget_report(&mut self) {
        if let Some(by_tag) = &mut self.0 {
            by_tag.current.clear();
        }
    }

    /// Adds the bytes that another reporter has counted.
    pub(crate) fn append(&mut self, mut other: Self) {
        other.end_report();
        let Some(other) = other.0 else { return };
        let ended = &mut self.0.get_or_insert_default().ended;
        other.ended.into_iter().enumerate().for_each(|(tag, bytes)| add(ended, tag, bytes));
    }

    /// The bytes with this tag that completed reports have counted.
    pub(crate) fn bytes_with(&self, tag: TagNumber) -> usize {
        let bytes = self.0.as_ref().and_then(|by_tag| by_tag.ended.get(usize::from(tag)));
        bytes.copied().unwrap_or(0)
    }
}

fn add(by_tag: &mut Vec<usize>, tag: usize, bytes: usize) {
    if bytes > 0 {
        if tag >= by_tag.len() {
            by_tag.resize(tag + 1, 0);
        }
        by_tag[tag] = by_tag[tag].saturating_add(bytes);
    }
}
