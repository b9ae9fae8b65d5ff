//! Groups the unreported and twice-reported blocks of a running program by crate, type and function.
//!
//! An engine passes its blocks in memory, with the site and type of each stack, and the path of each report. The
//! analysis treats these blocks as blocks of a dump.

use std::collections::BTreeMap;

use dmd_format::Mode;

use crate::dump::{CallFrame, Dump, DumpBlock, DumpTraceId};
use crate::names::{FoldRules, FoldedStack, TypeVerdict};
use crate::records::{Analysis, AnalyzeOptions, CutStackId, NO_STACK, RecordKind};

/// Blocks with equal sizes and stacks.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LiveBlocks {
    /// The requested bytes of each block.
    pub requested: u64,
    /// The slop of each block: usable bytes minus requested bytes.
    pub slop: u64,
    /// The number of blocks.
    pub count: u64,
    /// The stack that allocated the blocks; `None` if the engine did not record the stack.
    pub allocated_by: Option<LiveStack>,
    /// The first and the second reporter. The second reporter is set only if the first reporter is set.
    pub reported_by: [Option<LiveStack>; 2],
    /// Whether each block represents smaller blocks, and its size is the sum of the sizes of these blocks.
    pub sampled: bool,
}

/// The id of a stack of a [`DarkMatter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveStack(DumpTraceId);

/// Blocks of a running program, with the stacks and reporters of each.
#[derive(Debug)]
pub struct DarkMatter(Dump);

/// Blocks that one function of a crate allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DarkMatterRow {
    /// Whether the blocks were reported twice or more. False for unreported blocks.
    pub twice: bool,
    /// The name of the crate that allocated the blocks.
    pub module: String,
    /// The name of the function that allocated the blocks.
    pub function: String,
    /// The type of unreported blocks; `None` if the stack does not name it.
    pub type_name: Option<String>,
    /// The names of the reporters. If several pairs of reporters reported blocks of this function, these are the names
    /// of the pair with the most bytes.
    pub reporters: String,
    /// Usable bytes.
    pub bytes: i128,
    /// Whether the bytes contain an estimate.
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

    /// Adds a stack that consists of a site, with the type of its blocks.
    pub fn add_stack(&mut self, site: &CallFrame<'_>, type_name: Option<&str>) -> LiveStack {
        let dump = &mut self.0;
        let id = DumpTraceId(dump.traces.len() as u32);
        let start = dump.calls.len() as u32;
        dump.calls.push(dump.frames.add(site));
        dump.calls.extend(type_name.map(|name| dump.frames.add_type(name)));
        dump.traces.push(start..dump.calls.len() as u32);
        LiveStack(id)
    }

    /// Adds a stack by its frames, innermost first. The frames of the site's callers may be missing.
    pub fn add_frames(&mut self, frames: &[CallFrame<'_>], folds: &FoldRules) -> LiveStack {
        let site = FoldedStack::fold(frames, folds).site();
        let type_name = TypeVerdict::from_stack(frames).type_name();
        self.add_stack(&site.map(|site| frames[site]).unwrap_or_default(), type_name.as_deref())
    }

    /// Adds a reporter by the path of its reports.
    pub fn add_reporter(&mut self, path: &str) -> LiveStack {
        self.add_stack(&CallFrame { function: Some(path), ..CallFrame::default() }, None)
    }

    /// Adds blocks.
    pub fn add(&mut self, blocks: &LiveBlocks) {
        let trace = |stack: Option<LiveStack>| stack.map_or(DumpTraceId::NONE, |LiveStack(trace)| trace);
        self.0.blocks.push(DumpBlock {
            swapped: 0,
            untouched: 0,
            req: blocks.requested,
            slop: blocks.slop,
            num: blocks.count,
            alloc: trace(blocks.allocated_by),
            reps: blocks.reported_by.map(trace),
            reporters: [u32::MAX; 2],
            sampled: blocks.sampled,
            weight: 1.0,
        });
    }

    /// The unreported and then the twice-reported blocks, each sorted by crate, type and function. Blocks without a
    /// recorded stack are estimated: they are distributed over the stacks of similar blocks.
    pub fn rows(self) -> Vec<DarkMatterRow> {
        let options = AnalyzeOptions::new().max_frames(2).estimate(true).limit(usize::MAX);
        let analysis = Analysis::new(self.0, &options);
        let mut rows: BTreeMap<(bool, String, Option<String>, String), DarkMatterRow> = BTreeMap::new();
        for section in &analysis.sections {
            let twice = match section.kind {
                RecordKind::Unreported => false,
                RecordKind::TwiceReported => true,
                _ => continue,
            };
            // The records are sorted descending by size, so the first reporters have the most bytes.
            for record in &section.records {
                let mut texts = analysis.frames(record.alloc).filter(|text| text.as_str() != NO_STACK);
                let frame = texts.next().map(|text| text.frame());
                let type_name =
                    texts.next().and_then(|text| text.as_type()).filter(|_| !twice).map(str::to_owned);
                let (module, function) = match &frame {
                    None => ("(no stack)".into(), "(no stack)"),
                    Some(frame) => (frame.crate_name(), frame.name()),
                };
                let key = (twice, module.clone().into_owned(), type_name.clone(), function.to_owned());
                let row = rows.entry(key).or_insert_with(|| DarkMatterRow {
                    twice,
                    module: module.into_owned(),
                    function: function.to_owned(),
                    type_name,
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

fn reporters(analysis: &Analysis, reports: [CutStackId; 2]) -> String {
    let first_frame = |stack: CutStackId| analysis.frames(stack).next().map(|text| text.without_number());
    let mut paths: Vec<&str> = reports.into_iter().filter_map(first_frame).collect();
    paths.dedup();
    paths.join(" and ")
}
