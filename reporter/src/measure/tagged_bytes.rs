//! The bytes of blocks with a tag that reports have counted: a reporter's report wins over a tag.

use crate::allocator::tags::{TagNumber, TaggedBlock};

/// Bytes by tag. It takes one word where no block has a tag.
#[derive(Debug, Default)]
pub(crate) struct TaggedBytes(Option<Box<ByTag>>);

#[derive(Debug, Default)]
struct ByTag {
    /// Of reports that have ended.
    ended: Vec<usize>,
    /// Of the current report.
    current: Vec<usize>,
}

impl TaggedBytes {
    /// The current report counts a block, if one was found.
    #[cold]
    pub(crate) fn add_found(&mut self, block: Option<TaggedBlock>) {
        if let Some(block) = block {
            add(&mut self.0.get_or_insert_default().current, block.tag.into(), block.bytes);
        }
    }

    /// The current report has ended: its blocks stay counted.
    pub(crate) fn end_report(&mut self) {
        if let Some(by_tag) = &mut self.0 {
            for (tag, bytes) in by_tag.current.drain(..).enumerate() {
                add(&mut by_tag.ended, tag, bytes);
            }
        }
    }

    /// The current report is dropped.
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

    /// The bytes of reports that have ended.
    pub(crate) fn of(&self, tag: TagNumber) -> usize {
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
