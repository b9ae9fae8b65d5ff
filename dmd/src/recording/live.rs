//! The blocks that were alive when a recording started.
//!
//! The child of a fork decides late that it is worth a file: most replace themselves by another program soon. Until
//! then its events stay in the buffers, and ends contain their blocks. So the blocks at the fork are those that are
//! alive now and have no event, and those whose first event is an end. Other threads may have started meanwhile, so
//! the table is read first, and then the buffers: what happens in between is in these.

use dmd_format::recording::{BlockAction, ChunkKind, EventDecoder, LiveBlock, LiveEncoder, RecordedBlock};

use crate::engine::ENGINE;
use crate::recording::buffer::Buffer;
use crate::recording::output::{CHUNK, Output};
use crate::system::pages::{self, DumpMap, DumpVec};
use crate::tables::block_table;

/// A block as the format has it.
#[inline(always)]
pub(super) fn block(block: block_table::Block) -> RecordedBlock {
    RecordedBlock { requested: block.requested as u64, slop: block.slop as u64, stack: block.trace.0 }
}

/// What each block of the buffers was before its first event there; `None` if it was none.
pub(super) struct Before(DumpMap<u64, Option<RecordedBlock>>);

impl Before {
    pub(super) fn new() -> Self {
        Self(pages::map())
    }

    /// Adds the events of a buffer.
    pub(super) fn add(&mut self, buffer: &Buffer) {
        if buffer.is_empty() {
            return;
        }
        let Ok(events) = EventDecoder::new(buffer.payload()) else { return };
        for event in events.flatten() {
            let before = match event.what {
                BlockAction::Begin(_) => None,
                BlockAction::End(block) | BlockAction::EndByMove(block) => block,
                BlockAction::Back(_) => continue,
            };
            let _ = pages::entry(&mut self.0, event.address, || before);
        }
    }
}

/// The blocks that are alive at one time. Those for which memory is short are missing.
pub(super) fn now() -> DumpVec<LiveBlock> {
    let mut now = pages::list();
    ENGINE.table().for_each(|address, found| {
        pages::push(&mut now, LiveBlock { address: address as u64, block: block(found) });
    });
    now
}

/// Writes the blocks that are alive at one time, or were before the events of some buffers.
pub(super) fn write(output: &mut Output, now: &[LiveBlock], before: &Before) {
    output.nodes();
    let mut encoder = LiveEncoder::new();
    let mut add = |address: u64, block: RecordedBlock| {
        encoder.push(&LiveBlock { address, block });
        if encoder.payload().len() >= CHUNK {
            output.chunk(ChunkKind::Live, encoder.payload());
            encoder.clear();
        }
    };
    for live in now {
        if !before.0.contains_key(&live.address) {
            add(live.address, live.block);
        }
    }
    // The order of blocks is of no importance.
    #[allow(clippy::iter_over_hash_type, reason = "readers put the blocks into a table")]
    for (address, block) in &before.0 {
        if let Some(block) = block {
            add(*address, *block);
        }
    }
    if !encoder.payload().is_empty() {
        output.chunk(ChunkKind::Live, encoder.payload());
    }
}
