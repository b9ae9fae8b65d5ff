//! Groups the unreported and twice-reported blocks of a running program by crate and function.
//!
//! An engine passes its blocks in memory, with one frame for each stack, and the path of each report. The analysis
//! treats them as those of a dump.

use std::collections::BTreeMap;

use crate::dump::{Block, Dump};
use crate::frame::Frame;
use crate::mode::Mode;
use crate::options::AnalyzeOptions;
use crate::records::{Analysis, NO_STACK, RecordKind};
use crate::stacks::StackId;
use crate::trace_id::TraceId;

/// Blocks with equal sizes and stacks.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LiveBlocks {
    /// Requested bytes of each.
    pub requested: u64,
    /// Usable bytes of each that were not requested.
    pub slop: u64,
    /// The number of blocks.
    pub count: u64,
    /// The stack that allocated them, if it was recorded.
    pub allocated_by: Option<LiveStack>,
    /// The reporters that reported them. The second is only set if the first is.
    pub reported_by: [Option<LiveStack>; 2],
    /// Each block stands for smaller blocks, and has the size of these together.
    pub sampled: bool,
}

/// A stack of [`DarkMatter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveStack(TraceId);

/// Blocks of a running program, with the stacks and reporters of each.
#[derive(Debug)]
pub struct DarkMatter(Dump);

/// Blocks that one function of a crate allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DarkMatterRow {
    /// True for blocks that were reported twice or more, false for unreported blocks.
    pub twice: bool,
    /// The crate.
    pub module: String,
    /// The function.
    pub function: String,
    /// The reporters; if several pairs reported blocks of this function, the pair that reported most.
    pub reporters: String,
    /// Usable bytes.
    pub bytes: i128,
    /// The bytes are an estimate.
    pub estimated: bool,
}

impl Default for DarkMatter {
    fn default() -> Self {
        Self(Dump::empty(Mode::DarkMatter))
    }
}

impl DarkMatter {
    /// An empty set of blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a stack. It has only one frame: the function to show.
    pub fn add_stack(&mut self, frame: &Frame<'_>) -> LiveStack {
        let dump = &mut self.0;
        let id = TraceId(dump.traces.len() as u32);
        let start = dump.calls.len() as u32;
        dump.calls.push(dump.frames.add(frame));
        dump.traces.push(start..start + 1);
        LiveStack(id)
    }

    /// Adds a reporter by the path of its reports.
    pub fn add_reporter(&mut self, path: &str) -> LiveStack {
        self.add_stack(&Frame { function: Some(path), ..Frame::default() })
    }

    /// Adds blocks.
    pub fn add(&mut self, blocks: &LiveBlocks) {
        let trace = |stack: Option<LiveStack>| stack.map_or(TraceId::NONE, |LiveStack(trace)| trace);
        self.0.blocks.push(Block {
            req: blocks.requested,
            slop: blocks.slop,
            num: blocks.count,
            alloc: trace(blocks.allocated_by),
            reps: blocks.reported_by.map(trace),
            reporters: [u32::MAX; 2],
            sampled: blocks.sampled,
        });
    }

    /// Unreported and twice-reported blocks, in order of crates and functions. The shares of blocks without a stack
    /// are estimates from those with one.
    pub fn rows(self) -> Vec<DarkMatterRow> {
        let options = AnalyzeOptions::new().max_frames(1).estimate(true).limit(usize::MAX);
        let analysis = Analysis::new(self.0, &options);
        let mut rows: BTreeMap<(bool, String, String), DarkMatterRow> = BTreeMap::new();
        for section in &analysis.sections {
            let twice = match section.kind {
                RecordKind::Unreported => false,
                RecordKind::TwiceReported => true,
                _ => continue,
            };
            // Records are sorted, the largest first.
            for record in &section.records {
                let text = analysis.frames(record.alloc).next().filter(|text| text.as_str() != NO_STACK);
                let frame = text.map(|text| text.frame());
                let (module, function) = match &frame {
                    None => ("(no stack)".into(), "(no stack)"),
                    Some(frame) => (frame.crate_name(), frame.name()),
                };
                let key = (twice, module.clone().into_owned(), function.to_owned());
                let row = rows.entry(key).or_insert_with(|| DarkMatterRow {
                    twice,
                    module: module.into_owned(),
                    function: function.to_owned(),
                    reporters: reporters(&analysis, record.reps),
                    ..DarkMatterRow::default()
                });
                row.bytes += record.sums.usable();
                row.estimated |= record.estimated;
            }
        }
        rows.into_values().collect()
    }
}

fn reporters(analysis: &Analysis, reports: [StackId; 2]) -> String {
    let first_frame = |stack: StackId| analysis.frames(stack).next().map(|text| text.without_number());
    let mut paths: Vec<&str> = reports.into_iter().filter_map(first_frame).collect();
    paths.dedup();
    paths.join(" and ")
}
