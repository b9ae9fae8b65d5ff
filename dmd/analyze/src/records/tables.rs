//! Groups blocks by keys other than their stacks.

use core::cmp::Reverse;
use core::hash::Hash;
use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::BlockSums;
use super::groups::{GroupAmount, GroupedDump, NOWHERE, StackGroups};
use super::options::TableKey;
use super::selection::OfKind;
use crate::dump::{DumpBlock, FrameTextId};
use crate::names::{TypeCertainty, TypeVerdict};
use crate::print::number;

/// A table of a section.
#[derive(Debug)]
pub(crate) struct RecordTable {
    pub(crate) by: TableKey,
    /// The rows, sorted, up to the limit.
    pub(crate) rows: Vec<TableRow>,
    /// The number of rows without the limit.
    pub(crate) all: usize,
    /// The sums of the rows beyond the limit. In a table of frames, a block counts in each of its rows.
    pub(crate) rest: BlockSums,
    /// The sums of blocks whose type is known, partly known, and unknown; empty except for [`TableKey::Type`].
    pub(crate) parts: Vec<TableRow>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TableRow {
    pub(crate) name: String,
    pub(crate) sums: BlockSums,
    /// The number of groups with this frame. Only for [`TableKey::Frame`].
    pub(crate) records: usize,
    pub(crate) estimated: bool,
}

/// The name of the row of blocks whose sizes are not known: DMD keeps only their sum.
const UNKNOWN_SIZES: &str = "(unknown)";

/// Makes the requested tables, for each kind. With `has_means` only the mean size of a stack's blocks is known.
pub(super) fn tables(groups: &StackGroups<'_>, kinds: &[OfKind], has_means: bool) -> Vec<Vec<RecordTable>> {
    let mut tables: Vec<Vec<RecordTable>> = kinds.iter().map(|_| Vec::new()).collect();
    if groups.options.by.is_empty() {
        return tables;
    }
    let blocks = FilteredBlocks::new(groups, kinds);
    for by in &groups.options.by {
        let of_kinds: Vec<RecordTable> = match by {
            TableKey::Frame => kinds.iter().map(|of_kind| by_frame(groups, &of_kind.kept)).collect(),
            TableKey::Size if has_means => blocks.by(*by, |_, _, _| (), |()| UNKNOWN_SIZES.to_owned()),
            TableKey::Size => blocks.by(*by, |_, block, _| size_class(block.usable()), size_name),
            TableKey::Module => blocks.by(*by, module(groups), |module| {
                module.map_or_else(|| "(no stack)".to_owned(), Cow::into_owned)
            }),
            TableKey::Reporter => {
                blocks.by(*by, |dump, block, group| reporter(groups, dump, block, group), |name| name)
            }
            TableKey::Type => by_type(&blocks),
        };
        for (table, tables) in of_kinds.into_iter().zip(&mut tables) {
            tables.push(table);
        }
    }
    tables
}

/// Finds the crate of the site that allocated a block.
fn module<'g>(
    groups: &'g StackGroups<'_>,
) -> impl Fn(&'g GroupedDump, &'g DumpBlock, u32) -> Option<Cow<'g, str>> {
    move |dump, block, _| {
        let owner = block.alloc.index().and_then(|index| dump.owners[index]);
        owner.map(|text| groups.texts.get(text).frame().crate_name())
    }
}

/// Makes the tables of types, with the share of blocks whose type is known.
fn by_type(blocks: &FilteredBlocks<'_, '_>) -> Vec<RecordTable> {
    let name = |verdict: Option<&TypeVerdict>| {
        verdict.map_or_else(|| "(no stack)".to_owned(), |verdict| verdict.to_string())
    };
    let tables = blocks.by(TableKey::Type, |dump, block, _| verdict(dump, block), name);
    let known = |verdict: Option<&TypeVerdict>| match verdict {
        Some(TypeVerdict::Typed { certainty: TypeCertainty::Certain, .. }) => "type known",
        Some(TypeVerdict::Typed { .. }) => "type known, or another type of the same layout",
        Some(TypeVerdict::Chunk { .. }) => "chunks of arenas",
        Some(TypeVerdict::In { .. }) => "only the function known",
        None => "without a stack",
    };
    let parts = blocks.by(TableKey::Type, |dump, block, _| known(verdict(dump, block)), str::to_owned);
    tables.into_iter().zip(parts).map(|(table, parts)| RecordTable { parts: parts.rows, ..table }).collect()
}

/// The type of a block. `None` if the block has no stack.
fn verdict<'g>(dump: &'g GroupedDump, block: &DumpBlock) -> Option<&'g TypeVerdict> {
    block.alloc.index().and_then(|index| dump.types.get(index))
}

/// The reporters of a block.
fn reporter(groups: &StackGroups<'_>, dump: &GroupedDump, block: &DumpBlock, group: u32) -> String {
    let name = |nth: usize| {
        let path = dump.reporters.get(block.reporters[nth] as usize).map(|reporter| &*reporter.path);
        if let Some(path) = path.filter(|path| !path.is_empty()) {
            return Some(path);
        }
        let stack = groups.get(group).reps[nth];
        let frames = || groups.stacks.get(stack).iter().map(|text| groups.texts.get(*text).frame());
        let frame = frames().find(|frame| !frame.is_measuring()).or_else(|| frames().next())?;
        Some(frame.name())
    };
    match (name(0), name(1)) {
        (None, _) => "(nobody)".to_owned(),
        (Some(first), None) => first.to_owned(),
        (Some(first), Some(second)) => format!("{first} and {second}"),
    }
}

/// The blocks of the groups that pass the filters.
struct FilteredBlocks<'g, 'o> {
    groups: &'g StackGroups<'o>,
    kinds: usize,
    /// For each group, the index of its kind, or [`NOWHERE`].
    kind_of: Vec<u32>,
}

impl<'g, 'o> FilteredBlocks<'g, 'o> {
    fn new(groups: &'g StackGroups<'o>, kinds: &[OfKind]) -> Self {
        let mut kind_of = vec![NOWHERE; groups.all.len()];
        for (index, of_kind) in kinds.iter().enumerate() {
            for group in &of_kind.kept {
                kind_of[*group as usize] = index as u32;
            }
        }
        Self { groups, kinds: kinds.len(), kind_of }
    }

    /// Makes a table for each kind.
    fn by<K: Hash + Eq>(
        &self,
        by: TableKey,
        key: impl Fn(&'g GroupedDump, &'g DumpBlock, u32) -> K,
        name: impl Fn(K) -> String,
    ) -> Vec<RecordTable> {
        let mut rows: Vec<TableRows<K>> = (0..self.kinds).map(|_| TableRows::new()).collect();
        for dump in &self.groups.dumps {
            self.groups.count(dump, |block, GroupAmount { group, sums, estimated }| {
                if let Some(rows) = rows.get_mut(self.kind_of[group as usize] as usize)
                    && sums != BlockSums::default()
                {
                    rows.add(key(dump, block, group), sums, estimated);
                }
            });
        }
        let limit = self.groups.options.row_limit;
        rows.into_iter().map(|rows| rows.table(by, limit, &name)).collect()
    }
}

/// Makes a table of frames. A group counts once for each frame of its stack.
fn by_frame(groups: &StackGroups<'_>, kept: &[u32]) -> RecordTable {
    let mut rows = TableRows::new();
    let mut seen = FxHashSet::default();
    for group in kept.iter().map(|group| groups.get(*group)) {
        seen.clear();
        for text in groups.stacks.get(group.alloc) {
            if seen.insert(*text) {
                rows.add(*text, group.sums, group.estimated);
            }
        }
    }
    let name = |text: FrameTextId| groups.texts.get(text).without_number().to_owned();
    rows.table(TableKey::Frame, groups.options.row_limit, name)
}

/// The rows of a table while blocks are added. `K` is the key of a row.
#[derive(Debug)]
struct TableRows<K>(FxHashMap<K, TableRow>);

impl<K: Hash + Eq> TableRows<K> {
    fn new() -> Self {
        Self(FxHashMap::default())
    }

    fn add(&mut self, key: K, sums: BlockSums, estimated: bool) {
        let row = self.0.entry(key).or_default();
        row.sums.add(sums);
        row.records += 1;
        row.estimated |= estimated;
    }

    /// The rows sorted by usable bytes, then by name, without rows whose sums are 0.
    fn table(self, by: TableKey, limit: usize, name: impl Fn(K) -> String) -> RecordTable {
        let mut rows: Vec<TableRow> = self
            .0
            .into_iter()
            .filter(|(_, row)| row.sums != BlockSums::default())
            .map(|(key, row)| TableRow { name: name(key), ..row })
            .collect();
        rows.sort_by(|a, b| {
            let amounts = |row: &TableRow| Reverse((row.sums.usable().abs(), row.sums.num.abs()));
            amounts(a).cmp(&amounts(b)).then_with(|| a.name.cmp(&b.name))
        });
        let all = rows.len();
        let mut rest = BlockSums::default();
        rows.iter().skip(limit).for_each(|row| rest.add(row.sums));
        rows.truncate(limit);
        RecordTable { by, rows, all, rest, parts: Vec::new() }
    }
}

/// The sizes of a class, as a range that ends at a power of two.
fn size_name(class: u32) -> String {
    match class {
        0 => "0".to_owned(),
        1 => "1".to_owned(),
        _ => {
            let top = 1_i128 << (class - 1);
            format!("{} to {}", number(top / 2 + 1), number(top))
        }
    }
}

fn size_class(usable: i128) -> u32 {
    match u128::try_from(usable) {
        Ok(0) | Err(_) => 0,
        Ok(size) => size.next_power_of_two().trailing_zeros() + 1,
    }
}
