//! A tree of holders with their sums, one level for each key.

use rustc_hash::FxHashMap;

use super::holder::BlockHolder;
use crate::records::BlockSums;

/// The sums of one holder, and of the holders below it.
#[derive(Debug, Default)]
pub(super) struct HolderNode {
    pub(super) sums: BlockSums,
    /// The bytes of each place, for a site.
    places: FxHashMap<String, i128>,
    children: FxHashMap<BlockHolder, HolderNode>,
}

impl HolderNode {
    /// Adds blocks to a path of holders below this node. Each holder comes with its place.
    pub(super) fn add(&mut self, holders: &[(BlockHolder, String)], sums: BlockSums) {
        self.sums.add(sums);
        if let Some(((first, place), rest)) = holders.split_first() {
            let child = self.children.entry(first.clone()).or_default();
            *child.places.entry(place.clone()).or_default() += sums.usable();
            child.add(rest, sums);
        }
    }

    /// The holders below this one, sorted descending by bytes.
    pub(super) fn children(&self) -> Vec<(&BlockHolder, &HolderNode)> {
        let mut children: Vec<(&BlockHolder, &HolderNode)> = self.children.iter().collect();
        children.sort_by(|(a, x), (b, y)| y.bytes().cmp(&x.bytes()).then_with(|| a.cmp(b)));
        children
    }

    /// The place with the most bytes.
    pub(super) fn place(&self) -> &str {
        let largest = self.places.iter().max_by(|a, b| a.1.abs().cmp(&b.1.abs()).then_with(|| b.0.cmp(a.0)));
        largest.map_or("", |(place, _)| place)
    }

    /// The absolute amount of bytes, by which holders are sorted. A difference may have negative sums.
    pub(super) fn bytes(&self) -> u128 {
        self.sums.usable().unsigned_abs()
    }
}

/// The sums of several holders.
pub(super) fn sum(nodes: &[(&BlockHolder, &HolderNode)]) -> BlockSums {
    let mut sums = BlockSums::default();
    nodes.iter().for_each(|(_, node)| sums.add(node.sums));
    sums
}
