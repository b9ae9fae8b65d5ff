//! Shows how the heap of a recording changed over time.

mod grouping;
mod json;
mod mapped;
mod text;

use super::ProgramOptions;
use super::holder::{BlockHolder, HolderFinder, HolderKey};
use crate::dump::{Dump, RecordingOutline};
use crate::error::AnalyzeError;
use crate::recording::{ForeignFrees, Recording, UsageFindings, UsageLine};
use crate::records::{Analysis, AnalyzeOptions};
use grouping::{StackHolders, UsageGroups};
use mapped::{MappedMemory, MappingSites};

pub use json::HistoryJson;
pub use text::HistoryText;

/// The number of steps into which the time is divided.
const STEPS: usize = 240;

/// The history of a recording: live bytes, allocations, sizes and life-times, in total and by site, type and thread.
///
/// [`text`](Self::text) and [`json`](Self::json) show it.
#[derive(Debug)]
pub struct UsageHistory {
    outline: RecordingOutline,
    warnings: Vec<String>,
    total: UsageLine,
    sites: Vec<UsageRow>,
    types: Vec<UsageRow>,
    threads: Vec<UsageRow>,
    grown: Vec<GrownRow>,
    pairs: Vec<ThreadPair>,
    other_pairs: ForeignFrees,
    mapped: MappedMemory,
}

/// The blocks of one site, type or thread.
#[derive(Debug)]
struct UsageRow {
    holder: BlockHolder,
    place: String,
    line: UsageLine,
}

/// Blocks of one site that were resized, but never became smaller.
#[derive(Debug)]
struct GrownRow {
    holder: BlockHolder,
    place: String,
    blocks: u64,
    moves: u64,
    /// The bytes that were copied when blocks moved.
    copied: u128,
    /// The block that grew to the largest size: its first size, its last size, and the number of its moves.
    largest: (u64, u64, u64),
}

/// Blocks that one thread allocated and another freed or moved.
#[derive(Debug)]
struct ThreadPair {
    allocated_by: String,
    freed_by: String,
    freed: ForeignFrees,
}

impl UsageHistory {
    /// Replays a recording. `symbolize` looks up the symbols of a dump that has the recording's stacks, for example
    /// with `Dump::symbolize`. The folds of the options decide which function is a site.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Recording::state_at`].
    pub fn new(
        recording: &mut Recording,
        options: &ProgramOptions,
        symbolize: impl FnOnce(&mut Dump),
    ) -> Result<Self, AnalyzeError> {
        let findings = recording.findings()?;
        let outline = recording.outline()?;
        let stacks = findings.usage.stacks();
        let mappings = recording.mapping_stacks();
        let of_mappings = mappings.iter().map(|(stack, _)| *stack);
        let mut dump = recording.stacks(stacks.iter().map(|usage| usage.stack).chain(of_mappings))?;
        symbolize(&mut dump);
        let mappings = MappingSites::new(mappings, &dump);
        let of_analysis = AnalyzeOptions::new().max_frames(usize::MAX).types(true);
        let (analysis, of_blocks) = Analysis::with_block_stacks(dump, &of_analysis);
        let holders = HolderFinder::new(&analysis, options);
        let (of_blocks, of_mappings) = of_blocks.split_at(stacks.len().min(of_blocks.len()));
        let held = StackHolders::new(&holders, stacks, of_blocks, &[HolderKey::Site, HolderKey::Type]);
        let names: Vec<String> =
            recording.threads().map(|(number, id, name)| thread_name(number, id, name)).collect();
        let grouped = UsageGroups::new(&held, &names, recording.stacks_end());
        let lines = recording.lines(grouped.groups.clone(), STEPS)?;
        let (total, [sites, types, threads]) = grouped.rows(lines);
        let mapped = mappings.memory(recording, &holders, of_mappings)?;
        Ok(Self {
            outline,
            warnings: recording.warnings(),
            mapped,
            total,
            sites,
            types,
            threads,
            grown: grown(&findings, &held),
            pairs: pairs(&findings, &names),
            other_pairs: findings.other_pairs,
        })
    }

    /// The facts of the whole recording.
    pub fn outline(&self) -> &RecordingOutline {
        &self.outline
    }

    /// The whole heap over time.
    pub fn total(&self) -> &UsageLine {
        &self.total
    }

    /// The history as text, with at most `rows` rows of each table.
    pub fn text<'h>(&'h self, rows: usize, options: &'h ProgramOptions) -> HistoryText<'h> {
        HistoryText::new(self, rows, options)
    }

    /// The history as JSON, with at most `rows` rows of each table.
    pub fn json(&self, rows: usize) -> HistoryJson<'_> {
        HistoryJson::new(self, rows)
    }

    /// The length of a step in nanoseconds.
    fn step(&self) -> f64 {
        self.outline.end.time.as_secs_f64() * 1e9 / STEPS as f64
    }
}

fn thread_name(number: u32, system_id: u32, name: &str) -> String {
    match (number, name) {
        (0, _) => "(unknown thread)".to_owned(),
        (_, "") => format!("thread {system_id}"),
        _ => format!("{name} ({system_id})"),
    }
}

fn grown(findings: &UsageFindings, held: &StackHolders) -> Vec<GrownRow> {
    let mut rows: Vec<GrownRow> = Vec::new();
    let mut by_holder = std::collections::BTreeMap::new();
    for (stack, grown) in &findings.grown {
        let (holder, place) = held.holder(*stack, 0);
        let at = *by_holder.entry(holder.clone()).or_insert_with(|| {
            rows.push(GrownRow {
                holder,
                place: place.clone(),
                blocks: 0,
                moves: 0,
                copied: 0,
                largest: (0, 0, 0),
            });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.blocks += grown.blocks;
        row.moves += grown.moves;
        row.copied += grown.copied;
        if grown.largest.last > row.largest.1 {
            row.largest = (grown.largest.first, grown.largest.last, grown.largest.moves);
            row.place = place;
        }
    }
    rows.sort_by(|a, b| {
        let key = |row: &GrownRow| core::cmp::Reverse((row.copied, row.largest.1));
        key(a).cmp(&key(b)).then_with(|| a.holder.cmp(&b.holder))
    });
    rows
}

fn pairs(findings: &UsageFindings, names: &[String]) -> Vec<ThreadPair> {
    let name = |thread: u32| names.get(thread as usize).cloned().unwrap_or_default();
    let pairs = findings.pairs().into_iter();
    pairs
        .map(|((from, to), freed)| ThreadPair { allocated_by: name(from), freed_by: name(to), freed })
        .collect()
}
