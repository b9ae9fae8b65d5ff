//! Finds dominators without its own walk, if the graph's nodes are in the order of a walk, as in files that a walk
//! has written.
//!
//! At first, each node is below the first node that leads to it. Each dominator of a node is on every path from the
//! root, so all dominators of the node are above it in this tree. The algorithm then examines each edge. If the source
//! of the edge is not below the node above the edge's referent, the referent moves up. It is then below the nearest
//! node that is above both the source and the referent. When no edge moves a node any more, all nodes above a node are
//! its dominators: every path to it goes through them. Keith Cooper, Timothy Harvey and Ken Kennedy climb in the same
//! way (A Simple, Fast Dominance Algorithm, 2001), but start with a depth-first walk.
//!
//! The loops visit the graph's arrays from the first node to the last, so the processor can read ahead in most of
//! them. A node has a greater number than the nodes above it. Breadth-first walks produce such flat trees that
//! climbing is short. In other graphs, climbing may take too many steps. [`refine`] stops without a result if climbing
//! takes too many steps, or if the order of nodes is not the order of a walk.

use crate::arrays::huge;
use crate::graph::Graph;
use crate::prefetch::{AHEAD, prefetch};
use crate::progress::{CancelledError, StepCounter, chunks};

/// The average number of steps for each node, upwards or for repeated edges. Beyond it, [`refine`] stops without a
/// result. Heaps need less than one step.
const PATIENCE: usize = 4;
/// The number of nodes at the top of the tree; more if the root leads to more nodes. The data of these nodes stay in
/// a processor's caches.
const TOP: u32 = 1 << 15;

/// The dominator tree of a graph whose nodes come after their dominators.
pub(super) struct RefinedTree {
    /// For each node, the number of its immediate dominator, with all bits inverted. The root's dominator is the root
    /// itself. An unreachable node has 0, so that zeroed memory from the system is a valid start.
    pub(super) inverted: Vec<u32>,
    /// An array to reuse, so that the system need not clear more memory.
    pub(super) spare: Vec<u32>,
}

/// The dominator tree. `None` if the order of nodes is not the order of a walk, or if climbing takes too long. Counts
/// one step for each node.
pub(super) fn refine(
    graph: &Graph,
    steps: &mut StepCounter<'_>,
) -> Result<Option<RefinedTree>, CancelledError> {
    let mut refined = TreeRefinement::new(graph);
    let mut left = graph.node_count();
    for part in chunks(0..left) {
        steps.steps(part.len())?;
        left -= part.len();
        if refined.take(graph, part).is_none() {
            steps.steps(left)?;
            return Ok(None);
        }
    }
    Ok(refined.settle(steps)?.map(|()| RefinedTree { inverted: refined.inverted, spare: refined.tops }))
}

struct TreeEdge {
    from: u32,
    to: u32,
}

struct TreeRefinement {
    /// For each node, the node above it, in the format of [`RefinedTree`].
    inverted: Vec<u32>,
    /// For each node, the last top node on the path of first edges to it.
    tops: Vec<u32>,
    /// The number after the last top node.
    top_end: u32,
    /// The nodes from 1 to this number are directly below the root.
    below_root: u32,
    /// The number of steps that are left.
    patience: usize,
    /// The edges of the current part of the graph that may move nodes.
    met: Vec<TreeEdge>,
    /// The edges that may move a node again after nodes above it have moved.
    unsettled: Vec<TreeEdge>,
}

impl TreeRefinement {
    fn new(graph: &Graph) -> Self {
        let nodes = graph.node_count();
        let mut inverted = huge(vec![0; nodes]);
        inverted[0] = !0;
        let below_root = graph.referents(0).iter().fold(0, |last, to| last + u32::from(*to == last + 1));
        Self {
            inverted,
            tops: huge(vec![0; nodes]),
            top_end: TOP.max(below_root + 1),
            below_root,
            patience: PATIENCE * nodes,
            met: Vec::new(),
            unsettled: Vec::new(),
        }
    }

    /// Processes the edges of some nodes. Returns `None` if [`refine`] must stop.
    fn take(&mut self, graph: &Graph, part: core::ops::Range<usize>) -> Option<()> {
        let referents = graph.all_referents();
        let (inverted, tops) = (&mut self.inverted[..], &mut self.tops[..]);
        self.met.clear();
        for from in part {
            if inverted[from] == 0 {
                continue;
            }
            let (own_top, from) = (tops[from], from as u32);
            for edge in graph.edge_range(from) {
                if let Some(ahead) = referents.get(edge + AHEAD) {
                    prefetch(inverted, *ahead as usize);
                }
                let to = referents[edge];
                let known = inverted[to as usize];
                if known == 0 {
                    if to < from {
                        return None;
                    }
                    inverted[to as usize] = !from;
                    tops[to as usize] = if to < self.top_end { to } else { own_top };
                    continue;
                }
                // A single branch: a processor would often mispredict separate branches for these conditions.
                if !((known == !0) | (known == !from) | (to == from)) {
                    self.met.push(TreeEdge { from, to });
                }
            }
        }
        let met = core::mem::take(&mut self.met);
        for (index, edge) in met.iter().enumerate() {
            if let Some(ahead) = met.get(index + AHEAD) {
                prefetch(&self.tops, ahead.to as usize);
                prefetch(&self.inverted, self.above(ahead.to) as usize);
            }
            self.meet(edge)?;
        }
        self.met = met;
        Some(())
    }

    fn above(&self, node: u32) -> u32 {
        !self.inverted[node as usize]
    }

    /// Moves the referent of an edge, if necessary. Returns `None` if [`refine`] must stop.
    #[inline]
    fn meet(&mut self, edge: &TreeEdge) -> Option<()> {
        let TreeEdge { from, to } = *edge;
        let above = self.above(to);
        if above == 0 || above == from {
            return Some(());
        }
        // All dominators of `to` at the top of the tree are above both `one` and `other`.
        let one = if above < self.top_end { above } else { self.tops[to as usize] };
        let other = self.tops[from as usize];
        let common = if one == other && above >= self.top_end {
            self.common(above, from)?
        } else if one != other && one.max(other) <= self.below_root {
            0
        } else {
            self.common(one, other)?
        };
        if self.move_up(to, above, common) {
            self.unsettled.push(TreeEdge { from, to });
        }
        Some(())
    }

    /// Moves a node up to `common`. Returns whether edges may move the node again.
    #[inline]
    fn move_up(&mut self, node: u32, above: u32, common: u32) -> bool {
        if common != above {
            self.inverted[node as usize] = !common;
            // The graph may have no edge from `above` to the node. Adding this edge does not change dominators: all
            // dominators of the node are also above `above`.
            if common != 0 {
                self.unsettled.push(TreeEdge { from: above, to: node });
            }
        }
        common != 0
    }

    /// The last node that is above both nodes, or is one of them. Returns `None` if [`refine`] must stop.
    #[inline]
    fn common(&mut self, mut one: u32, mut other: u32) -> Option<u32> {
        while one != other {
            let lower = if one > other { &mut one } else { &mut other };
            *lower = self.above(*lower);
            self.patience = self.patience.checked_sub(1)?;
        }
        Some(one)
    }

    /// Moves nodes until the source of each edge is below the node above the edge's referent. Returns `None` if
    /// [`refine`] must stop.
    fn settle(&mut self, steps: &mut StepCounter<'_>) -> Result<Option<()>, CancelledError> {
        let mut is_settled = false;
        while !is_settled {
            is_settled = true;
            let edges = core::mem::take(&mut self.unsettled);
            for part in chunks(0..edges.len()) {
                // The number of these steps is unknown in advance, so the progress does not show them.
                steps.steps(0)?;
                let Some(patience) = self.patience.checked_sub(part.len()) else { return Ok(None) };
                self.patience = patience;
                for index in part {
                    let TreeEdge { from, to } = edges[index];
                    if let Some(ahead) = edges.get(index + AHEAD) {
                        prefetch(&self.inverted, ahead.from as usize);
                        prefetch(&self.inverted, ahead.to as usize);
                    }
                    let above = self.above(to);
                    if above == 0 {
                        continue;
                    }
                    let Some(common) = self.common(above, from) else { return Ok(None) };
                    is_settled &= common == above;
                    if self.move_up(to, above, common) {
                        self.unsettled.push(TreeEdge { from, to });
                    }
                }
            }
        }
        Ok(Some(()))
    }
}
