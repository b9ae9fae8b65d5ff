//! Firefox's breadth-first walk. It arrives at nodes by edges, so it arrives at the root only if an edge leads back
//! to the root. It then takes the root's edges again.

use crate::arrays::huge;
use crate::graph::Graph;

pub(crate) struct BreadthFirst {
    /// One bit for each node: set after an edge has arrived there.
    seen: Vec<u64>,
    queue: Vec<u32>,
    next: usize,
}

impl BreadthFirst {
    /// A walk from the root.
    pub(crate) fn new(graph: &Graph) -> Self {
        Self::from(graph, 0)
    }

    pub(crate) fn from(graph: &Graph, start: u32) -> Self {
        let nodes = graph.node_count();
        let mut queue = huge(Vec::with_capacity(nodes + 1));
        queue.push(start);
        Self { seen: vec![0; nodes.div_ceil(64)], queue, next: 0 }
    }

    /// The next node whose edges the caller should take.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        let node = self.queue.get(self.next).copied()?;
        self.next += 1;
        Some(node)
    }

    /// Records that an edge leads to `node`. Returns whether this is the first edge to `node`.
    #[inline]
    pub(crate) fn arrive(&mut self, node: u32) -> bool {
        let (word, bit) = (&mut self.seen[node as usize / 64], 1 << (node % 64));
        let is_first = *word & bit == 0;
        if is_first {
            *word |= bit;
            self.queue.push(node);
        }
        is_first
    }
}
