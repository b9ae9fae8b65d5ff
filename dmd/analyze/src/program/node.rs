//! A tree of holders with their sums, one level for each key.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::holder::BlockHolder;
use crate::records::BlockSums;

/// A line counts as small if it has less than a tenth (`1 / MANY`) of its holder's bytes.
const MANY: u128 = 10;

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

    /// The holders below this holder, sorted descending by bytes. Holders without bytes, of a difference, are sorted by
    /// resident bytes.
    pub(super) fn children(&self) -> Vec<(&BlockHolder, &HolderNode)> {
        let mut children: Vec<(&BlockHolder, &HolderNode)> = self.children.iter().collect();
        let resident = |node: &Self| if node.bytes() == 0 { node.sums.resident().unsigned_abs() } else { 0 };
        let key = |node: &Self| (node.bytes(), resident(node));
        children.sort_by(|(a, x), (b, y)| key(y).cmp(&key(x)).then_with(|| a.cmp(b)));
        children
    }

    /// The line with the most bytes. If this line has less than half of the holder's bytes, the range of the lines in
    /// the same file that do not count as small: `src/main.rs:27..30`.
    pub(super) fn place(&self) -> Cow<'_, str> {
        let most = |(one, x): &(&String, &i128), (other, y): &(&String, &i128)| {
            x.abs().cmp(&y.abs()).then_with(|| other.cmp(one))
        };
        let Some((largest, bytes)) = self.places.iter().max_by(most) else { return "".into() };
        let all: u128 = self.places.values().map(|bytes| bytes.unsigned_abs()).sum();
        if bytes.unsigned_abs() * 2 >= all {
            return largest.into();
        }
        let line = |place: &str| -> Option<u32> {
            let (file, line) = place.rsplit_once(':')?;
            line.parse().ok().filter(|_| largest.rsplit_once(':').is_some_and(|(of, _)| of == file))
        };
        let large = self.places.iter().filter(|(_, bytes)| bytes.unsigned_abs() * MANY >= all);
        let lines: Vec<u32> = large.filter_map(|(place, _)| line(place)).collect();
        match (lines.iter().min(), lines.iter().max(), largest.rsplit_once(':')) {
            (Some(first), Some(last), Some((file, _))) if first < last => {
                format!("{file}:{first}..{last}").into()
            }
            _ => largest.into(),
        }
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
