//! The memory that the program mapped itself, by the functions and the allocators that mapped it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::STEPS;
use crate::dump::Dump;
use crate::error::AnalyzeError;
use crate::program::holder::{BlockHolder, HolderFinder, HolderKey};
use crate::program::mapping_caller::allocators;
use crate::recording::{MappedLine, MappingStack, Recording};
use crate::records::CutStackId;

/// The maximum number of rows. Further functions share a row.
const MOST: usize = 1000;

/// The mapped memory of one function, or of one allocator.
#[derive(Debug)]
pub(super) struct MappedRow {
    pub(super) holder: BlockHolder,
    pub(super) place: String,
    pub(super) line: MappedLine,
}

/// The mapped memory of a recording: in total, and by function or allocator.
#[derive(Debug, Default)]
pub(super) struct MappedMemory {
    pub(super) total: MappedLine,
    /// The rows, sorted descending by the most bytes.
    pub(super) rows: Vec<MappedRow>,
}

/// The stacks of mappings, with the allocator of each.
pub(super) struct MappingSites {
    stacks: Vec<MappingStack>,
    allocators: Vec<Option<&'static str>>,
}

impl MappingSites {
    /// Finds the allocators. The last blocks of `dump` have the stacks of mappings, in this order.
    pub(super) fn new(stacks: Vec<MappingStack>, dump: &Dump) -> Self {
        let allocators = allocators(dump, stacks.len());
        Self { stacks, allocators }
    }

    /// The mapped memory over the time. `of_stacks` has the analysis's stack for each of the stacks.
    pub(super) fn memory(
        self,
        recording: &mut Recording,
        holders: &HolderFinder<'_>,
        of_stacks: &[CutStackId],
    ) -> Result<MappedMemory, AnalyzeError> {
        if self.stacks.is_empty() {
            return Ok(MappedMemory::default());
        }
        let mut numbers: BTreeMap<BlockHolder, usize> = BTreeMap::new();
        let mut sites: Vec<(BlockHolder, String)> = Vec::new();
        let mut groups: FxHashMap<MappingStack, usize> = FxHashMap::default();
        for ((stack, allocator), of_stack) in self.stacks.iter().zip(self.allocators).zip(of_stacks) {
            let (holder, place) = match allocator {
                Some(allocator) => (BlockHolder::plain(format!("the memory of {allocator}")), String::new()),
                None => {
                    let held = holders.find_for_stack(*of_stack, &[HolderKey::Site]).into_iter().next();
                    let (holder, place) = held.unwrap_or_default();
                    let (_, is_file) = stack;
                    match is_file {
                        true => (BlockHolder::plain(format!("files of {}", holder.whole())), place),
                        false => (holder, place),
                    }
                }
            };
            let (holder, place) = match numbers.len() < MOST || numbers.contains_key(&holder) {
                true => (holder, place),
                false => (BlockHolder::plain("(others)"), String::new()),
            };
            let next = sites.len();
            let number = *numbers.entry(holder.clone()).or_insert(next);
            if number == next {
                sites.push((holder, place));
            }
            groups.insert(*stack, number);
        }
        let mut lines = recording.mapped_lines(&groups, STEPS)?.into_iter();
        let total = lines.next().unwrap_or_default();
        let rows =
            sites.into_iter().zip(lines).map(|((holder, place), line)| MappedRow { holder, place, line });
        let mut rows: Vec<MappedRow> = rows.collect();
        rows.sort_by(|a, b| b.line.highest.cmp(&a.line.highest).then_with(|| a.holder.cmp(&b.holder)));
        Ok(MappedMemory { total, rows })
    }
}
