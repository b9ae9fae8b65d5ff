//! The changes between two sources.

use dmd_analyze::program::bytes;

use super::control::CallControl;
use super::source::{OpenedSource, SourceData};
use super::table::{AmountTable, changes_by_name};

/// The table of changes between two sources of one kind.
pub(super) fn changes(
    before: &OpenedSource,
    after: &OpenedSource,
    group: &str,
    control: &CallControl,
) -> Result<AmountTable, String> {
    match (&before.data, &after.data) {
        (SourceData::Reports(first), SourceData::Reports(second)) => match group {
            "path" => Ok(first.changes(second)),
            _ => changes_by_name(&first.table(group), &second.table(group)),
        },
        (SourceData::Stacks(first), SourceData::Stacks(second)) => first.changes(second, group),
        (SourceData::Graph(_), SourceData::Graph(_)) => {
            changes_by_name(&before.data.table(group, control)?, &after.data.table(group, control)?)
        }
        _ => Err(format!(
            "{} is {} and {} is {}: compare two sources of the same kind",
            before.handle, before.kind, after.handle, after.kind
        )),
    }
}

pub(super) fn census_changes(
    before: &OpenedSource,
    after: &OpenedSource,
    group: &str,
    control: &CallControl,
) -> Result<AmountTable, String> {
    match (&before.data, &after.data) {
        (SourceData::Graph(first), SourceData::Graph(second)) => first.census_changes(second, group, control),
        _ => Err("census_diff compares heap graphs; `explain` compares other sources".to_owned()),
    }
}

/// The totals of two sources, as text.
pub(super) fn totals_text(before: &OpenedSource, after: &OpenedSource) -> String {
    let (first, second) = (before.data.total(), after.data.total());
    format!("Total: {} before, {} after.\n", bytes(first.bytes), bytes(second.bytes))
}
