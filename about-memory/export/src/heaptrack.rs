//! heaptrack's text, file version 2, for `heaptrack_print` and `heaptrack_gui`.
//!
//! A snapshot has one allocation for each live block, and no frees. So the client's peak and leaks are the live blocks.
//! The outermost frames show the owner of the blocks. A history has the times at which blocks are allocated and freed.
//!
//! Source: `src/analyze` and `src/interpret` of heaptrack 1.4. All numbers are hexadecimal. Texts, instructions and
//! traces have numbers from 1; kinds of allocations have numbers from 0.

mod lines;
mod writer;

use std::io::Write;

use rustc_hash::FxHashMap;

use crate::beside;
use crate::error::ExportError;
use crate::grouped::grouped;
use crate::stack_profile::{ProfileEvent, ProfileSample, ProfileStackId, ProfileValue, StackProfile};
use lines::HeaptrackLines;
use writer::HeaptrackWriter;

const FORMAT: &str = "heaptrack";

/// The number of samples that are read together.
const WINDOW: usize = 256;

/// Options for writing a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaptrackOptions {
    pub(crate) most: u64,
}

impl Default for HeaptrackOptions {
    fn default() -> Self {
        Self { most: 5_000_000 }
    }
}

impl HeaptrackOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of allocations. If there are more blocks, several equal blocks become one allocation
    /// with their total size. Default: 5,000,000.
    #[must_use]
    pub fn most(mut self, most: u64) -> Self {
        self.most = most;
        self
    }
}

/// The data that the file could not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaptrackSummary {
    /// The number of blocks that are missing from the client's counts, because several blocks became one allocation.
    pub merged: u64,
}

/// Writes live blocks or, if they were not recorded, allocated blocks.
///
/// # Errors
///
/// Returns an error if `out` fails, if an amount is negative, or if the bytes exceed 63 bits.
pub fn write(
    stacks: &StackProfile,
    options: &HeaptrackOptions,
    mut out: impl Write,
) -> Result<HeaptrackSummary, ExportError> {
    let recorded =
        |blocks: ProfileValue, bytes: ProfileValue| stacks.index_of(blocks).zip(stacks.index_of(bytes));
    let columns = recorded(ProfileValue::LiveBlocks, ProfileValue::LiveBytes)
        .or_else(|| recorded(ProfileValue::AllocatedBlocks, ProfileValue::AllocatedBytes));
    let Some((blocks, bytes)) = columns else {
        return Err(ExportError::NotRecorded(FORMAT, "blocks with their bytes"));
    };
    let amounts = |sample: &ProfileSample<'_>| (sample.amounts[blocks], sample.amounts[bytes]);
    let mut sum = 0;
    let mut counts = Vec::with_capacity(stacks.samples().len());
    for (of_blocks, of_bytes) in stacks.samples().map(|sample| amounts(&sample)) {
        for (amount, column) in [(of_blocks, blocks), (of_bytes, bytes)] {
            if amount < 0 {
                return Err(ExportError::Negative(FORMAT, stacks.values()[column].name(), amount.into()));
            }
        }
        sum += i128::from(of_bytes);
        counts.push(of_blocks as u64);
    }
    if sum > i128::from(i64::MAX) {
        return Err(ExportError::TooLarge(FORMAT, stacks.values()[bytes].name(), sum, i128::from(i64::MAX)));
    }
    let most = most_each(&counts, options.most);
    drop(counts);

    // The blocks of one owner are written together, because their traces have a common start.
    let owners = stacks.owners();
    let owner_of = |index: usize| owners.index(stacks.sample(index).labels);
    let (ends, order) = grouped(stacks.samples().len(), owners.all.len(), owner_of);
    let mut written = HeaptrackSummary::default();
    let find = |sender| {
        let mut writer = HeaptrackWriter::new(stacks, |lines| beside::send(&sender, lines));
        let mut samples = order.chunks(WINDOW).flat_map(|indices| {
            // Distant samples are read together, so that the processor loads them in parallel.
            let read = indices.iter().map(|index| stacks.sample(*index as usize));
            read.map(|sample| (sample.stack, amounts(&sample))).collect::<Vec<_>>()
        });
        let mut start = 0;
        for (owner, end) in owners.all.iter().zip(ends) {
            writer.begin_owner(owner)?;
            let count = end - core::mem::replace(&mut start, end);
            for (stack, (blocks, bytes)) in samples.by_ref().take(count) {
                let (blocks, bytes) = (blocks as u64, bytes as u64);
                if blocks == 0 && bytes == 0 {
                    continue;
                }
                let trace = writer.next_trace(stack)?;
                if blocks > most || blocks == 0 {
                    written.merged += blocks.saturating_sub(1);
                    writer.allocate(bytes, trace, 1)?;
                    continue;
                }
                // If the sizes are unknown, all blocks get nearly the same size: they differ by at most one byte.
                let (size, larger) = (bytes / blocks, bytes % blocks);
                writer.allocate(size, trace, blocks - larger)?;
                writer.allocate(size + 1, trace, larger)?;
            }
        }
        writer.finish(stacks.facts().duration)
    };
    let mut room = Vec::new();
    beside::run(find, |lines: HeaptrackLines| lines.write(&mut out, &mut room))?;
    out.flush()?;
    Ok(written)
}

/// Writes the events in order. An event with an earlier time than its predecessor gets the predecessor's time.
///
/// # Errors
///
/// Returns an error if `out` fails.
pub fn write_history(
    stacks: &StackProfile,
    events: impl IntoIterator<Item = ProfileEvent>,
    mut out: impl Write,
) -> Result<(), ExportError> {
    let mut room = Vec::new();
    let mut writer = HeaptrackWriter::new(stacks, |lines: HeaptrackLines| lines.write(&mut out, &mut room));
    let mut traces: FxHashMap<ProfileStackId, u64> = FxHashMap::default();
    let mut kinds: FxHashMap<(ProfileStackId, u64), u64> = FxHashMap::default();
    let mut last = 0;
    for event in events {
        let time = event.time.as_millis();
        if time > last {
            writer.time(event.time)?;
            last = time;
        }
        let kind = match kinds.get(&(event.stack, event.size)) {
            Some(kind) => *kind,
            None => {
                let trace = match traces.get(&event.stack) {
                    Some(trace) => *trace,
                    None => {
                        let trace = writer.next_trace(event.stack)?;
                        traces.insert(event.stack, trace);
                        trace
                    }
                };
                let kind = writer.kind(event.size, trace)?;
                kinds.insert((event.stack, event.size), kind);
                kind
            }
        };
        writer.event(if event.is_free { '-' } else { '+' }, kind)?;
    }
    writer.finish(stacks.facts().duration)?;
    Ok(out.flush()?)
}

/// The maximum number of equal blocks to write one by one, so that there are at most `most` allocations.
fn most_each(counts: &[u64], most: u64) -> u64 {
    let lines = |limit: u64| -> u64 {
        let lines = counts.iter().map(|count| if *count > limit { 1 } else { *count });
        lines.fold(0, u64::saturating_add)
    };
    let mut limit = counts.iter().copied().max().unwrap_or(0);
    while limit > 1 && lines(limit) > most {
        limit /= 2;
    }
    limit
}
