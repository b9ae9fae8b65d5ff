//! Blocks grouped by something else than their stacks.

use core::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::options::By;
use super::super::stacks::Stacks;
use super::super::texts::{FrameId, Texts};
use super::{Group, Sums};

/// A table of a section.
#[derive(Debug)]
pub(in super::super) struct Table {
    pub(in super::super) by: By,
    /// Sorted, no more than the limit.
    pub(in super::super) rows: Vec<Row>,
    /// How many there are without limit.
    pub(in super::super) all: usize,
}

#[derive(Clone, Debug, Default)]
pub(in super::super) struct Row {
    pub(in super::super) name: String,
    pub(in super::super) sums: Sums,
    /// Groups that it has something of; of a frame only.
    pub(in super::super) records: usize,
    pub(in super::super) estimated: bool,
}

/// What is put into a table before it is shown; `K` names a row.
#[derive(Debug)]
pub(super) struct Rows<K>(FxHashMap<K, Row>);

impl<K: core::hash::Hash + Eq> Rows<K> {
    pub(super) fn new() -> Self {
        Self(FxHashMap::default())
    }

    pub(super) fn add(&mut self, key: K, sums: Sums, estimated: bool) {
        let row = self.0.entry(key).or_default();
        row.sums.add(sums);
        row.records += 1;
        row.estimated |= estimated;
    }

    /// Sorted by usable bytes, then by name; without rows that cancel out.
    pub(super) fn table(self, by: By, limit: usize, name: impl Fn(K) -> String) -> Table {
        let mut rows: Vec<Row> = self
            .0
            .into_iter()
            .filter(|(_, row)| row.sums != Sums::default())
            .map(|(key, row)| Row { name: name(key), ..row })
            .collect();
        rows.sort_by(|a, b| {
            let amounts = |row: &Row| Reverse((row.sums.usable().abs(), row.sums.num.abs()));
            amounts(a).cmp(&amounts(b)).then_with(|| a.name.cmp(&b.name))
        });
        let all = rows.len();
        rows.truncate(limit);
        Table { by, rows, all }
    }
}

/// Each group counts once for each frame of its stack.
pub(super) fn by_frame(groups: &[Group], stacks: &Stacks, texts: &Texts, limit: usize) -> Table {
    let mut rows = Rows::new();
    let mut seen = FxHashSet::default();
    for group in groups {
        seen.clear();
        for frame in stacks.get(group.alloc) {
            if seen.insert(*frame) {
                rows.add(*frame, group.sums, group.estimated);
            }
        }
    }
    rows.table(By::Frame, limit, |frame: FrameId| texts.get(frame).to_owned())
}

/// A power of two that a size is not above, as a range.
pub(super) fn size_name(class: u32) -> String {
    let number = super::super::text::number;
    match class {
        0 => "0".to_owned(),
        1 => "1".to_owned(),
        _ => {
            let top = 1_i128 << (class - 1);
            format!("{} to {}", number(top / 2 + 1), number(top))
        }
    }
}

pub(super) fn size_class(usable: i128) -> u32 {
    match u128::try_from(usable) {
        Ok(0) | Err(_) => 0,
        Ok(size) => size.next_power_of_two().trailing_zeros() + 1,
    }
}
