//! Every node that edges lead to from the root, in no order that anybody should rely on: as far as edges allow,
//! in that of the graph's arrays, which a processor reads much faster than it jumps.
//!
//! The sweep goes over the arrays from the first node to the last. A node that is ahead of it is only marked when
//! an edge leads to it, since the sweep comes to it anyway; a node behind it is taken at once. Files are written
//! by breadth-first walks, so that in them most edges lead ahead or to what has been taken.

use crate::graph::Graph;
use crate::prefetch::prefetch;
use crate::progress::{Cancelled, Steps};

/// How many nodes behind the sweep are fetched ahead.
const AHEAD: usize = 4;
/// How many edges ahead the marks are fetched: the edges of the nodes that come next mostly follow.
const EDGES_AHEAD: usize = 24;

struct Sweep<'a, F> {
    graph: &'a Graph,
    /// One bit for each node that an edge leads to.
    seen: Vec<u64>,
    /// All nodes before this one have been passed.
    position: usize,
    /// Nodes before `position`, seen but not yet taken.
    behind: Vec<u32>,
    visit: F,
}

/// Visits each node once. The root is visited only if an edge leads back to it. A step for each node.
pub(crate) fn sweep(graph: &Graph, steps: &mut Steps<'_>, visit: impl FnMut(usize)) -> Result<(), Cancelled> {
    let nodes = graph.node_count();
    let seen = vec![0; nodes.div_ceil(64)];
    let mut sweep = Sweep { graph, seen, position: 0, behind: Vec::new(), visit };
    sweep.follow(0);
    while sweep.position < nodes {
        let rest = sweep.seen[sweep.position / 64] >> (sweep.position % 64);
        if rest == 0 {
            sweep.position = (sweep.position / 64 + 1) * 64;
            continue;
        }
        let node = sweep.position + rest.trailing_zeros() as usize;
        sweep.position = node + 1;
        steps.step()?;
        sweep.take(node as u32);
        while let Some(node) = sweep.behind.pop() {
            if let Some(ahead) = sweep.behind.len().checked_sub(AHEAD) {
                graph.prefetch_edges(sweep.behind[ahead]);
            }
            steps.step()?;
            sweep.take(node);
        }
    }
    Ok(())
}

impl<F: FnMut(usize)> Sweep<'_, F> {
    #[inline]
    fn take(&mut self, node: u32) {
        (self.visit)(node as usize);
        self.follow(node);
    }

    /// Marks where the node's edges lead.
    #[inline(always)]
    fn follow(&mut self, node: u32) {
        let (edges, referents) = (self.graph.edge_range(node), self.graph.all_referents());
        for ahead in referents[edges.start..].iter().skip(EDGES_AHEAD).take(edges.len()) {
            prefetch(&self.seen, *ahead as usize / 64);
        }
        for to in &referents[edges] {
            let (word, bit) = (&mut self.seen[*to as usize / 64], 1 << (to % 64));
            let is_first = *word & bit == 0;
            *word |= bit;
            // One branch, which is seldom taken: one on each condition would often be foreseen wrongly.
            let first = core::hint::select_unpredictable(is_first, *to as usize, usize::MAX);
            if first < self.position {
                self.behind.push(*to);
            }
        }
    }
}
