//! The order in which Firefox lists nodes of equal retained size.

use crate::arrays::huge;
use crate::graph::Graph;
use crate::prefetch::{AHEAD, prefetch};
use crate::progress::{CancelledError, LOOK, StepCounter};

/// A node that the walk has met but not left, and the edges that it has not taken yet.
struct OpenNode {
    node: u32,
    first: u32,
    end: u32,
}

/// For each node, the number of nodes that a depth-first walk from the root leaves before it. The walk takes the
/// edges of a node from the last to the first. Unreachable nodes have 0. Counts one step for each node.
pub(super) fn ranks(graph: &Graph, steps: &mut StepCounter<'_>) -> Result<Vec<u32>, CancelledError> {
    let (nodes, referents) = (graph.node_count(), graph.all_referents());
    let mut ranks = huge(vec![0; nodes]);
    // One bit for each node. The bits fit in the caches, so that most edges need no access to main memory.
    let mut met = vec![0_u64; nodes.div_ceil(64)];
    met[0] = 1;
    let open = |node| {
        let edges = graph.edge_range(node);
        OpenNode { node, first: edges.start as u32, end: edges.end as u32 }
    };
    let mut stack = vec![open(0)];
    let (mut left, mut next_look) = (0, LOOK);
    while let Some(OpenNode { node, first, end }) = stack.last_mut() {
        if left as usize >= next_look {
            steps.steps(LOOK)?;
            next_look += LOOK;
        }
        if first == end {
            ranks[*node as usize] = left;
            left += 1;
            stack.pop();
            continue;
        }
        *end -= 1;
        let edge = *end as usize;
        let to = referents[edge];
        let (word, bit) = (&mut met[to as usize / 64], 1 << (to % 64));
        if *word & bit != 0 {
            continue;
        }
        *word |= bit;
        let below = open(to);
        if below.first == below.end {
            ranks[to as usize] = left;
            left += 1;
        } else {
            stack.push(below);
        }
    }
    steps.steps(nodes + LOOK - next_look)?;
    Ok(ranks)
}

/// Returns the same as [`ranks`], from the order in which the walk leaves the nodes.
pub(super) fn ranks_of(postorder: &[u32], nodes: usize) -> Vec<u32> {
    let mut ranks = huge(vec![0; nodes]);
    for (rank, node) in postorder.iter().enumerate() {
        if let Some(ahead) = postorder.get(rank + AHEAD) {
            prefetch(&ranks, *ahead as usize);
        }
        ranks[*node as usize] = rank as u32;
    }
    ranks
}
