//! Only Linux shows the resident memory of each mapping and of each page.

use crate::tables::block_table::TableBlock;

/// The bytes of blocks that are not in memory. Always zero here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AbsentBytes {
    pub(crate) swapped: u64,
    pub(crate) untouched: u64,
}

impl AbsentBytes {
    pub(crate) fn add(&mut self, _other: Self) {}
}

/// The memory of the process. This type has no values on systems other than Linux.
pub(crate) enum MemoryJoin {}

impl MemoryJoin {
    pub(crate) fn restart(&mut self) {
        match *self {}
    }

    pub(crate) fn add(&mut self, _address: usize, _block: TableBlock) -> AbsentBytes {
        match *self {}
    }
}
