//! Inverts and filters trees: builds a new tree from paths of the old tree.

use hashbrown::HashMap;

use super::{CensusTree, CensusTreeName};

/// A tree built from paths. Children with equal names are one node.
struct TreeOfPaths<'a> {
    old: &'a CensusTree,
    new: CensusTree,
    known: HashMap<(usize, Option<CensusTreeName>), usize>,
    made: &'a mut u64,
}

impl<'a> TreeOfPaths<'a> {
    fn new(old: &'a CensusTree, made: &'a mut u64) -> Self {
        Self { old, new: CensusTree::with_root(made), known: HashMap::new(), made }
    }

    /// Adds a path of nodes of the old tree, in downward order, without the new root.
    fn add(&mut self, path: impl Iterator<Item = usize>) {
        let mut at = 0;
        for place in path {
            let old = &self.old.nodes[place];
            let key = (at, old.name.clone());
            at = match self.known.get(&key) {
                Some(known) => {
                    // As in Firefox, the counts of the old nodes are added, but the totals stay those of the first old
                    // node.
                    let node = &mut self.new.nodes[*known];
                    node.bytes += old.bytes;
                    node.count += old.count;
                    if !node.leaves.is_empty() {
                        node.leaves.extend(&old.leaves);
                    }
                    *known
                }
                None => {
                    let place = self.new.add(Some(at), old.name.clone(), self.made);
                    let node = &mut self.new.nodes[place];
                    (node.bytes, node.count) = (old.bytes, old.count);
                    (node.total_bytes, node.total_count) = (old.total_bytes, old.total_count);
                    node.leaves = old.leaves.clone();
                    self.known.insert(key, place);
                    place
                }
            };
        }
    }

    fn finish(mut self) -> CensusTree {
        let (old, new) = (&self.old.nodes[0], &mut self.new.nodes[0]);
        (new.total_bytes, new.total_count) = (old.total_bytes, old.total_count);
        self.new
    }
}

/// Calls `leaf` with the path from the root to each leaf, and with a flag: whether `is_match` accepts a node of the
/// path other than the root.
fn leaves(
    tree: &CensusTree,
    is_match: impl Fn(&CensusTreeName) -> bool,
    mut leaf: impl FnMut(&[usize], bool),
) {
    // The nodes of the path. For each: its index, the number of children visited, and whether a node up to it
    // matched.
    let mut path = vec![0];
    let mut stack = vec![(0, false)];
    while let Some((taken, matched)) = stack.last_mut() {
        let node = &tree.nodes[*path.last().expect("each entry has an index in the path")];
        if node.children.is_empty() && !node.is_pruned {
            leaf(&path, *matched);
        }
        match node.children.get(*taken) {
            Some(child) => {
                *taken += 1;
                let matched = *matched || tree.nodes[*child].name.as_ref().is_some_and(&is_match);
                path.push(*child);
                stack.push((0, matched));
            }
            None => {
                path.pop();
                stack.pop();
            }
        }
    }
}

/// The inverted tree: each leaf is a child of a new root. Below the leaf is its path, with the old root last.
pub(super) fn inverted(tree: &CensusTree, made: &mut u64) -> CensusTree {
    let mut paths = TreeOfPaths::new(tree, made);
    leaves(tree, |_| false, |path, _| paths.add(path.iter().rev().copied()));
    paths.finish()
}

/// The tree of the paths through a node whose name contains the text.
pub(super) fn filtered(tree: &CensusTree, text: &str, made: &mut u64) -> CensusTree {
    let mut paths = TreeOfPaths::new(tree, made);
    leaves(
        tree,
        |name| name.contains(text),
        |path, matched| {
            if matched {
                paths.add(path.iter().skip(1).copied());
            }
        },
    );
    paths.finish()
}
