//! What nobody reported, and what was reported twice, of a running program: by crate and function.
//!
//! An engine hands its blocks over in memory, with one frame for each stack, and for each report its path. They are
//! analyzed as those of a dump that was read.

use std::collections::BTreeMap;

use crate::dump::{Block, Dump, TraceId};
use crate::frame::Frame;
use crate::mode::Mode;
use crate::options::AnalyzeOptions;
use crate::records::{Analysis, NO_STACK, RecordKind};
use crate::stacks::StackId;

/// Blocks that are alike.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LiveBlocks {
    /// Requested bytes of each.
    pub requested: u64,
    /// Usable bytes of each that were not requested.
    pub slop: u64,
    /// How many there are.
    pub count: u64,
    /// Who allocated them, if their stack was recorded.
    pub allocated_by: Option<LiveStack>,
    /// Who reported them. The second is only there if the first is.
    pub reported_by: [Option<LiveStack>; 2],
    /// They stand for smaller blocks, and have the size of these together.
    pub sampled: bool,
}

/// A stack of [`DarkMatter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveStack(TraceId);

/// Blocks of a running program, and who allocated and reported them.
#[derive(Debug)]
pub struct DarkMatter(Dump);

/// Blocks that one function of a crate allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DarkMatterRow {
    /// Reported twice or more; else by nobody.
    pub twice: bool,
    /// The crate.
    pub module: String,
    /// The function.
    pub function: String,
    /// Who reported them; of several pairs, the one that reported most.
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
    /// Without any block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a stack, of which one frame counts: that of the function to be named.
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

    /// What nobody reported and what was reported twice, in order of crates and functions. Blocks without a stack are
    /// estimated from those with one.
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
            // The largest first.
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
