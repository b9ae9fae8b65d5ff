//! Builds the tree of a report, without inverting or filtering.

use hashbrown::HashMap;

use super::{CensusTree, CensusTreeName, CensusTreeNode};
use crate::census::{CensusKey, CensusReport, CensusStack};

pub(super) fn tree(report: &CensusReport, made: &mut u64) -> CensusTree {
    let mut growth = TreeGrowth { tree: CensusTree::with_root(made), made, leaf: 0 };
    growth.add(report, 0);
    growth.tree
}

struct TreeGrowth<'a> {
    tree: CensusTree,
    made: &'a mut u64,
    /// The number of parts of the report visited so far.
    leaf: u64,
}

impl TreeGrowth<'_> {
    /// Adds a report to its node. The function may recurse, because breakdowns nest only a few levels.
    ///
    /// A node is settled when its whole report is in the tree. The frames of stacks are settled after all reports of
    /// these stacks, as in Firefox. The order of nodes with equal counts depends on the order of settling.
    fn add(&mut self, report: &CensusReport, place: usize) {
        let leaf = self.leaf;
        self.leaf += 1;
        let node = &mut self.tree.nodes[place];
        match report {
            CensusReport::Count(count) => {
                // Two stacks may share a node. The node gets the sum of their counts here. In Firefox, it keeps only
                // the counts of the last stack.
                node.bytes += count.bytes.unwrap_or(0);
                node.count += count.count.unwrap_or(0);
                node.leaves.insert(leaf);
            }
            CensusReport::Bucket(ids) => {
                node.count += ids.len() as i128;
                node.leaves.insert(leaf);
            }
            _ => {
                let mut frames = HashMap::new();
                for (key, below) in report.children() {
                    let name = match key {
                        CensusKey::Text(text) => CensusTreeName::Text(text),
                        CensusKey::Place(at) => CensusTreeName::Text(at.to_string().into()),
                        CensusKey::Stack(frame) => {
                            let child = self.stack(&frame, place, &mut frames);
                            self.add(below, child);
                            continue;
                        }
                    };
                    let child = self.tree.add(Some(place), Some(name), self.made);
                    self.add(below, child);
                }
                // A frame has a higher number than its caller, so the frame is settled first.
                let mut frames: Vec<usize> = frames.into_values().collect();
                frames.sort_unstable_by(|a, b| b.cmp(a));
                frames.into_iter().for_each(|frame| self.settle(frame));
            }
        }
        self.settle(place);
    }

    /// Removes children without counts, adds up the remaining children and sorts them.
    fn settle(&mut self, place: usize) {
        let nodes = &mut self.tree.nodes;
        let mut children = core::mem::take(&mut nodes[place].children);
        let has_children = !children.is_empty();
        children.retain(|child| {
            let node = &nodes[*child];
            !node.children.is_empty() || node.bytes != 0 || node.count != 0
        });
        let (mut bytes, mut count) = (nodes[place].bytes, nodes[place].count);
        for child in &children {
            bytes += nodes[*child].total_bytes;
            count += nodes[*child].total_count;
        }
        let node = &mut nodes[place];
        node.is_pruned |= has_children && children.is_empty();
        (node.total_bytes, node.total_count, node.children) = (bytes, count, children);
        self.tree.sort_children(place, CensusTreeNode::by_total);
    }

    /// The node of a stack's innermost frame. Equal callers share nodes.
    fn stack(
        &mut self,
        frame: &CensusStack,
        place: usize,
        known: &mut HashMap<(usize, CensusTreeName), usize>,
    ) -> usize {
        let mut frames: Vec<&CensusStack> = frame.frames().collect();
        let mut at = place;
        while let Some(frame) = frames.pop() {
            let name = CensusTreeName::Frame(frame.frame.clone());
            at = match known.get(&(at, name.clone())) {
                Some(child) => *child,
                None => {
                    let child = self.tree.add(Some(at), Some(name.clone()), self.made);
                    known.insert((at, name), child);
                    child
                }
            };
        }
        at
    }
}
