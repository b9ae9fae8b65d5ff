//! The blocks that were live when a recording started.
//!
//! The child of a fork starts its file late, because most children soon replace themselves by another program. Until
//! then the events of the child stay in the buffers, and each end contains its block. The blocks at the fork are the
//! live blocks without an event, and the blocks whose first event is an end. Other threads may have started in the
//! meantime, so the writer first reads the table, and then the buffers: the buffers contain the events in between.

use dmd_format::recording::{BlockAction, ChunkKind, EventDecoder, LiveBlock, LiveEncoder, RecordedBlock};

use crate::engine::ENGINE;
use crate::recording::buffer::EventBuffer;
use crate::recording::output::{CHUNK, RecordingOutput};
use crate::system::pages::{self, DumpMap, DumpVec};
use crate::tables::block_table;

/// Converts a block to the format of recordings.
#[inline(always)]
pub(super) fn block(block: block_table::TableBlock) -> RecordedBlock {
    RecordedBlock { requested: block.requested as u64, slop: block.slop as u64, stack: block.trace.0 }
}

/// For each address in the buffers: the block before its first event; `None` if there was no block.
pub(super) struct EventsBefore(DumpMap<u64, Option<RecordedBlock>>);

impl EventsBefore {
    pub(super) fn new() -> Self {
        Self(pages::map())
    }

    /// Adds the events of a buffer.
    pub(super) fn add(&mut self, buffer: &EventBuffer) {
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

/// Returns the blocks that are live now. Drops blocks when memory runs out.
pub(super) fn now() -> DumpVec<LiveBlock> {
    let mut now = pages::list();
    ENGINE.table().for_each(|address, found| {
        pages::push(&mut now, LiveBlock { address: address as u64, block: block(found) });
    });
    now
}

/// Writes the blocks that were live before the events: the blocks that are live now and have no events, and for each
/// address with events the block before the first event.
pub(super) fn write(output: &mut RecordingOutput, now: &[LiveBlock], before: &EventsBefore) {
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
    // The order of the blocks does not matter.
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
