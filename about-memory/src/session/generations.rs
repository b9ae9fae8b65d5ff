//! Several snapshots side by side: the bytes of each group in each snapshot, and its growth from the first to the last.

use core::cmp::Reverse;
use std::collections::HashMap;

use heap_graph::CensusTree;
use heap_graph::census::{CensusTreeName, CensusTreeNode};

/// The groups of several censuses, as one tree.
#[derive(Debug, Default)]
pub struct Generations {
    /// All groups. The first group is the root.
    groups: Vec<GenerationGroup>,
    /// The number of censuses.
    count: usize,
}

/// A group, and its amount in each census.
#[derive(Debug, Default)]
pub(super) struct GenerationGroup {
    pub(super) name: Option<CensusTreeName>,
    pub(super) amounts: Vec<i128>,
    /// Whether one of the censuses counts nodes in the group itself.
    pub(super) has_nodes: bool,
    below: Vec<usize>,
}

impl GenerationGroup {
    pub(super) fn growth(&self) -> i128 {
        self.amounts.last().copied().unwrap_or_default() - self.amounts.first().copied().unwrap_or_default()
    }
}

/// Converts a number to JSON. The browser rounds a number that floats cannot represent exactly.
fn json_number(number: i128) -> serde_json::Value {
    i64::try_from(number).map_or_else(|_| (number as f64).into(), Into::into)
}

impl Generations {
    /// Combines the groups of these trees. All trees must have the same shape. `amount` returns the amount of a group.
    pub(super) fn new(trees: &[CensusTree], amount: impl Fn(&CensusTreeNode) -> i128) -> Self {
        let root = GenerationGroup { amounts: vec![0; trees.len()], ..GenerationGroup::default() };
        let mut all = Self { groups: vec![root], count: trees.len() };
        let mut known = HashMap::new();
        for (place, tree) in trees.iter().enumerate() {
            all.groups[0].amounts[place] = tree.root().total_bytes;
            let mut left = vec![(tree.root(), 0)];
            while let Some((node, group)) = left.pop() {
                for child in tree.children(node) {
                    let next = all.groups.len();
                    let below = *known.entry((group, child.name.clone())).or_insert(next);
                    if below == next {
                        all.groups[group].below.push(next);
                        let amounts = vec![0; trees.len()];
                        all.groups.push(GenerationGroup {
                            name: child.name.clone(),
                            amounts,
                            ..GenerationGroup::default()
                        });
                    }
                    all.groups[below].amounts[place] += amount(child);
                    all.groups[below].has_nodes |= !child.leaves.is_empty();
                    left.push((child, below));
                }
            }
        }
        // The groups with the largest growth are first.
        for group in 0..all.groups.len() {
            let mut below = core::mem::take(&mut all.groups[group].below);
            below.sort_by_key(|below| {
                let group = &all.groups[*below];
                Reverse((group.growth(), group.amounts.last().copied()))
            });
            all.groups[group].below = below;
        }
        all
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn group(&self, place: usize) -> &GenerationGroup {
        &self.groups[place]
    }

    pub(super) fn groups_below(&self, place: usize) -> &[usize] {
        &self.groups[place].below
    }

    /// Returns the tree as JSON: each group has its name, its bytes in each snapshot, and the groups below it.
    pub fn to_json(&self) -> serde_json::Value {
        let mut made: Vec<Option<serde_json::Value>> = Vec::new();
        made.resize_with(self.groups.len(), || None);
        // A group is always after its parent.
        for (place, group) in self.groups.iter().enumerate().rev() {
            let below: Vec<_> = group.below.iter().filter_map(|below| made[*below].take()).collect();
            let amounts: Vec<_> = group.amounts.iter().map(|amount| json_number(*amount)).collect();
            made[place] = Some(serde_json::json!({
                "name": CensusTreeName::title(group.name.as_ref()), "bytes": amounts, "children": below,
            }));
        }
        made.swap_remove(0).unwrap_or_default()
    }

    /// Returns about how many bytes of memory the tree takes, without the texts of names.
    pub(super) fn memory(&self) -> usize {
        let each = size_of::<GenerationGroup>() + self.count * size_of::<i128>() + 3 * size_of::<usize>();
        self.groups.len() * (each + size_of::<CensusTreeName>())
    }
}
