//! From the report to the tree as it is at first.

use hashbrown::HashMap;

use super::{CensusTree, CensusTreeNode, Name};
use crate::report::{Key, Report, ReportFrame};

pub(super) fn tree(report: &Report, made: &mut u64) -> CensusTree {
    let mut growth = Growth { tree: CensusTree::with_root(made), made, leaf: 0 };
    growth.add(report, 0);
    growth.tree
}

struct Growth<'a> {
    tree: CensusTree,
    made: &'a mut u64,
    /// Parts of the report met so far.
    leaf: u64,
}

impl Growth<'_> {
    /// A report whose node is there already. Breakdowns nest a few levels only.
    ///
    /// A node is settled once all of its report is there, as in Firefox: what is equal later stands in the order
    /// that it had when a frame between two stacks, which is settled last, had nothing below it yet.
    fn add(&mut self, report: &Report, place: usize) {
        let leaf = self.leaf;
        self.leaf += 1;
        let node = &mut self.tree.nodes[place];
        match report {
            Report::Count(count) => {
                // Two stacks may have one node; Firefox keeps the last of them only.
                node.bytes += count.bytes.unwrap_or(0);
                node.count += count.count.unwrap_or(0);
                node.leaves.insert(leaf);
            }
            Report::Bucket(ids) => {
                node.count += ids.len() as i128;
                node.leaves.insert(leaf);
            }
            _ => {
                let mut frames = HashMap::new();
                for (key, below) in report.children() {
                    let name = match key {
                        Key::Text(text) => Name::Text(text),
                        Key::Place(at) => Name::Text(at.to_string().into()),
                        Key::Stack(frame) => {
                            let child = self.stack(&frame, place, &mut frames);
                            self.add(below, child);
                            continue;
                        }
                    };
                    let child = self.tree.add(Some(place), Some(name), self.made);
                    self.add(below, child);
                }
                // Frames are made after those that called them.
                let mut frames: Vec<usize> = frames.into_values().collect();
                frames.sort_unstable_by(|a, b| b.cmp(a));
                frames.into_iter().for_each(|frame| self.settle(frame));
            }
        }
        self.settle(place);
    }

    /// Leaves out children that came to nothing, adds up the others and sorts them.
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

    /// The node of a stack's youngest frame; equal callers share their nodes.
    fn stack(
        &mut self,
        frame: &ReportFrame,
        place: usize,
        known: &mut HashMap<(usize, Name), usize>,
    ) -> usize {
        let mut frames: Vec<&ReportFrame> = frame.frames().collect();
        let mut at = place;
        while let Some(frame) = frames.pop() {
            let name = Name::Frame(frame.frame.clone());
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
