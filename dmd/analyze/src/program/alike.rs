//! Records that a view shows as one: they differ only in frames that the view folds.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::ProgramOptions;
use crate::dump::FrameTextId;
use crate::names::{FoldReason, FoldedStack};
use crate::records::{Analysis, CutStackId, StackRecord};

/// The parts of a record that a view shows.
#[derive(PartialEq, Eq, Hash)]
struct ShownRecord {
    frames: Vec<FrameTextId>,
    type_name: Option<String>,
    reps: [CutStackId; 2],
    reporters: [u32; 2],
    estimated: bool,
}

/// The records of a section. Records that look equal become one record. If `records` is sorted by size, the result is
/// too.
pub(super) fn merged(
    analysis: &Analysis,
    records: &[StackRecord],
    options: &ProgramOptions,
) -> Vec<StackRecord> {
    if options.all_frames || options.verbose {
        return records.to_vec();
    }
    let folds: Vec<Option<FoldReason>> =
        analysis.texts.iter().map(|text| options.folds.reason(&text.frame())).collect();
    let mut numbers: FxHashMap<ShownRecord, usize> = FxHashMap::default();
    let mut merged: Vec<StackRecord> = Vec::new();
    for record in records {
        let texts = analysis.stacks.get(record.alloc);
        let shown = FoldedStack::with_reasons(texts.len(), |at| folds[texts[at].index()]).shown;
        let key = ShownRecord {
            frames: shown.iter().map(|at| texts[*at]).collect(),
            type_name: analysis.type_of(record.alloc).map(ToString::to_string),
            reps: record.reps,
            reporters: record.reporters,
            estimated: record.estimated,
        };
        let next = merged.len();
        match *numbers.entry(key).or_insert(next) {
            number if number == next => merged.push(record.clone()),
            number => add(&mut merged[number], record),
        }
    }
    // The user may have chosen a sort order other than bytes.
    let by_size = |record: &StackRecord| Reverse(record.sums.usable().unsigned_abs());
    if records.is_sorted_by_key(by_size) {
        merged.sort_by_key(by_size);
    }
    merged
}

fn add(to: &mut StackRecord, record: &StackRecord) {
    to.sums.add(record.sums);
    let mut sizes: BTreeMap<i128, i128> = BTreeMap::new();
    for (size, count) in to.sizes.iter().chain(&record.sizes) {
        *sizes.entry(*size).or_default() += count;
    }
    to.sizes = sizes.into_iter().rev().filter(|(_, count)| *count != 0).collect();
    to.addresses.extend_from_slice(&record.addresses);
}
