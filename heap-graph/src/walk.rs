//! The breadth-first walk of Firefox: nodes are arrived at by edges, so the root counts as reached only when
//! an edge leads to it, and then its edges are taken a second time.

use crate::graph::Graph;
use crate::huge::huge;

pub(crate) struct BreadthFirst {
    /// One bit for each node.
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

    /// The next node whose edges are to be taken.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        let node = self.queue.get(self.next).copied()?;
        self.next += 1;
        Some(node)
    }

    /// An edge leads to `node`: whether it is the first.
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
