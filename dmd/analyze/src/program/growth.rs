//! The growth of the heap between two times of a recording: sites and types by net growth.

mod json;
mod text;

use core::time::Duration;
use std::collections::BTreeMap;

use super::ProgramOptions;
use super::holder::{BlockHolder, HolderFinder, HolderKey};
use crate::dump::Dump;
use crate::error::AnalyzeError;
use crate::recording::{LiveSums, Moment, Recording};
use crate::records::{Analysis, AnalyzeOptions};

pub use json::GrowthJson;
pub use text::GrowthText;

/// The keys of the tables.
const KEYS: [HolderKey; 2] = [HolderKey::Site, HolderKey::Type];

/// The growth of a heap between two times of one recording, in total and by site and type.
///
/// Growth is net: the live bytes at the second time minus the live bytes at the first time. Bytes are usable bytes.
/// [`text`](Self::text) and [`json`](Self::json) show the growth.
#[derive(Debug)]
pub struct HeapGrowth {
    times: [Duration; 2],
    total: [LiveSums; 2],
    /// A table for each key. The rows that grew most come first.
    tables: [Vec<GrowthRow>; 2],
    began_late: bool,
    warnings: Vec<String>,
}

/// The blocks of one holder at both times.
#[derive(Debug)]
struct GrowthRow {
    holder: BlockHolder,
    place: String,
    sums: [LiveSums; 2],
}

impl HeapGrowth {
    /// Compares two times of a recording. `symbolize` looks up the symbols of a dump that has the recording's stacks,
    /// for example with `Dump::symbolize`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Recording::between`].
    pub fn new(
        recording: &mut Recording,
        [from, to]: [Moment; 2],
        options: &ProgramOptions,
        symbolize: impl FnOnce(&mut Dump),
    ) -> Result<Self, AnalyzeError> {
        let sums = recording.live_at(from, to)?;
        let outline = recording.outline()?;
        let mut dump = recording.stacks(sums.iter().map(|(stack, _)| *stack))?;
        symbolize(&mut dump);
        let of_analysis = AnalyzeOptions::new().max_frames(usize::MAX).types(true);
        let (analysis, of_blocks) = Analysis::with_block_stacks(dump, &of_analysis);
        let holders = HolderFinder::new(&analysis, options);
        let mut by_stack = BTreeMap::new();
        let mut total = [LiveSums::default(); 2];
        for ((_, sums), stack) in sums.into_iter().zip(of_blocks) {
            add(by_stack.entry(stack).or_default(), sums);
            add(&mut total, sums);
        }
        let mut tables = [const { BTreeMap::<BlockHolder, GrowthRow>::new() }; 2];
        // The largest change of one stack of each holder. The holder's row gets the place of this stack.
        let mut largest = [const { BTreeMap::<BlockHolder, u128>::new() }; 2];
        for (stack, sums) in by_stack {
            let change = sums[0].bytes.abs_diff(sums[1].bytes);
            for (key, (holder, place)) in holders.find_for_stack(stack, &KEYS).into_iter().enumerate() {
                let row = tables[key].entry(holder.clone()).or_insert_with(|| GrowthRow {
                    holder: holder.clone(),
                    place: String::new(),
                    sums: Default::default(),
                });
                add(&mut row.sums, sums);
                let most = largest[key].entry(holder).or_default();
                if row.place.is_empty() || change > *most {
                    (*most, row.place) = (change, place);
                }
            }
        }
        let sorted = |table: BTreeMap<BlockHolder, GrowthRow>| {
            let mut rows: Vec<GrowthRow> = table.into_values().collect();
            rows.sort_by(|a, b| b.growth().cmp(&a.growth()).then_with(|| a.holder.cmp(&b.holder)));
            rows
        };
        Ok(Self {
            times: [from, to].map(|moment| moment.time(&outline)),
            total,
            tables: tables.map(sorted),
            began_late: outline.began_late,
            warnings: recording.warnings(),
        })
    }

    /// The growth as text, with at most `rows` rows of each table.
    pub fn text<'g>(&'g self, rows: usize, options: &'g ProgramOptions) -> GrowthText<'g> {
        GrowthText::new(self, rows, options)
    }

    /// The growth as JSON, with at most `rows` rows of each table.
    pub fn json(&self, rows: usize) -> GrowthJson<'_> {
        GrowthJson::new(self, rows)
    }
}

impl GrowthRow {
    fn growth(&self) -> i128 {
        growth(&self.sums)
    }
}

fn add(to: &mut [LiveSums; 2], sums: [LiveSums; 2]) {
    to.iter_mut().zip(sums).for_each(|(to, sums)| to.add(sums));
}

/// The bytes by which the heap grew; negative if it shrank.
fn growth([before, after]: &[LiveSums; 2]) -> i128 {
    let bytes = |sums: &LiveSums| i128::try_from(sums.bytes).unwrap_or(i128::MAX);
    bytes(after) - bytes(before)
}

/// The number of blocks by which the heap grew; negative if it shrank.
fn more_blocks([before, after]: &[LiveSums; 2]) -> i128 {
    i128::from(after.blocks) - i128::from(before.blocks)
}
