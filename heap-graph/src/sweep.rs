//! Visits every node that the root reaches by edges. The order is unspecified. It follows the graph's arrays as far
//! as edges allow, since a processor reads memory in order much faster than at random places.
//!
//! The sweep visits the arrays from the first node to the last. If an edge leads to a later node, the sweep only
//! marks the node and visits it when it arrives there. If an edge leads to an earlier node, the sweep visits that
//! node at once. Files are written by breadth-first walks, so most edges in them lead to later nodes or to visited
//! nodes.

use crate::graph::Graph;
use crate::prefetch::prefetch;
use crate::progress::{CancelledError, StepCounter};

/// The distance in `behind`, in nodes, at which the sweep prefetches edges.
const AHEAD: usize = 4;
/// The distance, in edges, at which the sweep prefetches marks. The edges of the next nodes are mostly next in the
/// array.
const EDGES_AHEAD: usize = 24;

struct Sweep<'a, F> {
    graph: &'a Graph,
    /// One bit for each node: set if an edge leads to the node.
    seen: Vec<u64>,
    /// The sweep has visited the array up to this node.
    position: usize,
    /// Nodes before `position` that are marked but not yet visited.
    behind: Vec<u32>,
    visit: F,
}

/// Visits each reachable node once. Visits the root only if an edge leads back to it. Counts one step for each node.
pub(crate) fn sweep(
    graph: &Graph,
    steps: &mut StepCounter<'_>,
    visit: impl FnMut(usize),
) -> Result<(), CancelledError> {
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

    /// Marks the targets of the node's edges.
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
            // A single branch, rarely taken: a processor would often mispredict separate branches for these
            // conditions.
            let first = core::hint::select_unpredictable(is_first, *to as usize, usize::MAX);
            if first < self.position {
                self.behind.push(*to);
            }
        }
    }
}
