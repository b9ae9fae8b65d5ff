//! Dumps from profiles of other programs: stacks of which only the sums are known.

use dmd_format::{Mode, sample};

use super::frame::CallFrame;
use super::sample::ByteSample;
use super::trace_id::DumpTraceId;
use super::{Dump, DumpBlock, LoadedModule};
use crate::error::AnalyzeError;

/// The maximum sum of all stacks in bytes. It leaves room in 128 bits for sums of several dumps.
const MOST: f64 = (1_u128 << 120) as f64;

/// The index of a stack in [`Dump::stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltStack(DumpTraceId);

/// Makes a dump from stacks of which only the sums are known. Each block gets the mean size of its stack's blocks.
#[derive(Debug)]
pub struct DumpBuilder {
    dump: Dump,
    /// The number of recorded blocks.
    recorded: f64,
    bytes: f64,
    variance: f64,
}

impl DumpBuilder {
    /// A dump without blocks.
    pub fn new(mode: Mode) -> Self {
        let dump = Dump { has_means: true, modules: Some(Vec::new()), ..Dump::empty(mode) };
        Self { dump, recorded: 0.0, bytes: 0.0, variance: 0.0 }
    }

    /// Adds a program or library. Frames refer to it by its path.
    pub fn module(&mut self, module: LoadedModule) {
        self.dump.modules.get_or_insert_default().push(module);
    }

    /// Adds a stack, innermost frame first.
    ///
    /// # Panics
    ///
    /// Panics if all stacks together have more than 2^32 frames.
    pub fn stack<'t>(&mut self, frames: impl IntoIterator<Item = CallFrame<'t>>) -> BuiltStack {
        let index = |length: usize| u32::try_from(length).expect("a dump has at most 2^32 frames");
        let dump = &mut self.dump;
        let start = index(dump.calls.len());
        for frame in frames {
            // The look-up of symbols replaces frames that have only a module and an offset.
            let id = match frame.function {
                Some(_) => dump.frames.add(&frame),
                None => dump.frames.read(&format!("#00: {frame}")),
            };
            dump.calls.push(id);
        }
        dump.traces.push(start..index(dump.calls.len()));
        BuiltStack(DumpTraceId(index(dump.traces.len()) - 1))
    }

    /// Adds blocks of a stack: their number, the sum of their sizes in bytes, and the number of such blocks that each
    /// block represents (1 except in a sample). Ignores a number of 0.
    pub fn blocks(&mut self, stack: BuiltStack, number: u64, bytes: u64, weight: f64) {
        if number == 0 {
            return;
        }
        self.count(number as f64, bytes as f64, weight);
        self.dump.blocks.extend(DumpBlock::with_mean_size(stack.0, number, bytes, weight));
    }

    /// Adds blocks of a stack whose sums are already estimates, if the dump is a sample; else like
    /// [`blocks`](Self::blocks) with the weight 1.
    pub fn weighted_blocks(&mut self, stack: BuiltStack, number: u64, bytes: u64) {
        let Some(sample) = self.dump.sample.as_ref().filter(|_| number > 0) else {
            return self.blocks(stack, number, bytes, 1.0);
        };
        let weight = sample::weight(bytes / number, sample.mean);
        self.count(number as f64 / weight, bytes as f64 / weight, weight);
        let blocks = DumpBlock::with_mean_size(stack.0, number, bytes, 1.0);
        self.dump.blocks.extend(blocks.map(|block| DumpBlock { sampled: weight > 1.0, ..block }));
    }

    /// Counts recorded blocks and the sum of their sizes.
    fn count(&mut self, blocks: f64, sizes: f64, weight: f64) {
        self.recorded += blocks;
        self.bytes += sizes.max(blocks) * weight;
        self.variance += weight * (weight - 1.0) * sizes * sizes / blocks;
    }

    /// Sets whether the end of the file is missing. Default: no.
    pub fn cut(&mut self, is_cut: bool) {
        self.dump.is_cut = is_cut;
    }

    /// Marks the dump as a sample by bytes; `mean` is the mean distance of the sampled points, in bytes.
    pub fn sample(&mut self, mean: u64) {
        self.dump.sample = Some(ByteSample { mean, recorded: 0, standard_error: 0.0 });
    }

    /// The dump.
    ///
    /// # Errors
    ///
    /// Returns an error if the sum of all blocks is too large.
    pub fn finish(self) -> Result<Dump, AnalyzeError> {
        let Self { mut dump, recorded, bytes, variance } = self;
        if bytes >= MOST {
            return Err(AnalyzeError::Overflow("the profile".to_owned()));
        }
        if let Some(sample) = &mut dump.sample {
            (sample.recorded, sample.standard_error) = (recorded.round() as u64, variance.sqrt());
        }
        dump.measurements.counts = [dump.blocks.len(), dump.traces.len(), dump.frames.len()];
        Ok(dump)
    }
}
