//! The flame graph in the data of the page: its frames in preorder, in columns.

use std::collections::HashMap;

use dmd_analyze::FlameGraph;
use serde::Serialize;

use super::columns::{NumberColumn, TextColumn};

/// The page's floats are exact if each amount has a magnitude below this.
const EXACT: i128 = 1 << 52;

#[derive(Serialize)]
pub(super) struct FlameHeader {
    frames: usize,
    names: usize,
    /// Whether floats represent all amounts exactly.
    exact: bool,
}

/// Returns the header, and the columns to append to the columns of the reports.
pub(super) fn columns(graph: &FlameGraph) -> (FlameHeader, Vec<(&'static str, Vec<u8>)>) {
    let (mut children, mut name_of) = (NumberColumn::default(), NumberColumn::default());
    let (mut bytes, mut blocks) = (NumberColumn::default(), NumberColumn::default());
    let mut names = TextColumn::default();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut estimated = Vec::new();
    let mut exact = true;
    for frame in graph.frames() {
        children.push(frame.children as u64);
        let next = known.len();
        let name = *known.entry(frame.name).or_insert_with(|| {
            names.push(frame.name);
            next
        });
        name_of.push(name as u64);
        bytes.push_signed(frame.sums.usable());
        blocks.push_signed(frame.sums.num);
        estimated.push(u8::from(frame.estimated));
        exact &= frame.sums.usable().abs() < EXACT && frame.sums.num.abs() < EXACT;
    }
    let header = FlameHeader { frames: estimated.len(), names: known.len(), exact };
    let (name_lengths, names) = names.into_bytes();
    let columns = vec![
        ("flameChildren", children.into_bytes()),
        ("flameNameOf", name_of.into_bytes()),
        ("flameNameLengths", name_lengths),
        ("flameNames", names),
        ("flameBytes", bytes.into_bytes()),
        ("flameBlocks", blocks.into_bytes()),
        ("flameEstimated", estimated),
    ];
    (header, columns)
}
