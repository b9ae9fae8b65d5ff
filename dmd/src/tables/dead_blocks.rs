//! Freed blocks, counted by size and stack, for cumulative mode.

use crate::system::lock::{Lock, LockedValue};
use crate::system::pages::{self, PageMap};
use crate::tables::block_table::TableBlock;
use crate::tables::trace_id::TraceId;

const SHARDS: usize = 64;

/// The values of a freed block. Blocks with the same values are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DeadKind {
    pub(crate) requested: usize,
    pub(crate) slop: usize,
    pub(crate) trace: TraceId,
    pub(crate) sampled: bool,
}

pub(crate) struct DeadBlocks {
    shards: [LockedValue<PageMap<DeadKind, u64>>; SHARDS],
}

impl DeadBlocks {
    pub(crate) const fn new() -> Self {
        Self { shards: [const { LockedValue::new(pages::map()) }; SHARDS] }
    }

    pub(crate) fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        self.shards.iter().for_each(|shard| each(shard.lock()));
    }

    /// Counts a freed block. Returns false if memory is short.
    pub(crate) fn count(&self, block: TableBlock) -> bool {
        let TableBlock { requested, slop, trace, sampled, .. } = block;
        let mut shard = self.shards[(trace.0 as usize ^ requested) % SHARDS].hold();
        let kind = DeadKind { requested, slop, trace, sampled };
        pages::entry(&mut shard, kind, || 0).map(|count| *count += 1).is_some()
    }

    pub(crate) fn for_each(&self, mut each: impl FnMut(DeadKind, u64)) {
        for shard in &self.shards {
            #[allow(clippy::iter_over_hash_type, reason = "dumps merge blocks in any order, like Firefox")]
            for (kind, count) in shard.hold().iter() {
                each(*kind, *count);
            }
        }
    }

    pub(crate) fn clear(&self) {
        self.shards.iter().for_each(|shard| *shard.hold() = pages::map());
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| pages::map_bytes(&shard.hold())).sum()
    }
}
