//! Semi-NCA: semidominators as Lengauer and Tarjan find them, with path compression, and from them
//! immediate dominators by climbing the tree that is there so far.
//!
//! Nodes are numbered in the order in which a depth-first walk meets them; "less" is then "nearer the root".

use super::NONE;
use crate::graph::Graph;

/// A depth-first walk from the root that takes each node's edges from the last to the first.
pub(super) struct Walk {
    /// Nodes as they are met.
    pub(super) preorder: Vec<u32>,
    /// Nodes as they are left.
    pub(super) postorder: Vec<u32>,
    /// From nodes to their numbers; `NONE` if never met.
    numbers: Vec<u32>,
    /// By number: the number of the node it was met from.
    parents: Vec<u32>,
}

impl Walk {
    pub(super) fn new(graph: &Graph) -> Self {
        let nodes = graph.node_count();
        let mut walk = Self {
            preorder: Vec::with_capacity(nodes),
            postorder: Vec::with_capacity(nodes),
            numbers: vec![NONE; nodes],
            parents: Vec::with_capacity(nodes),
        };
        // A node and how many of its edges are yet to be taken.
        let mut stack: Vec<(u32, u32)> = Vec::new();
        let edges = |node| graph.referents(node).len() as u32;
        walk.meet(0, NONE);
        stack.push((0, edges(0)));
        while let Some((node, left)) = stack.last_mut() {
            let from = *node;
            let Some(edge) = left.checked_sub(1) else {
                walk.postorder.push(from);
                stack.pop();
                continue;
            };
            *left = edge;
            let to = graph.referents(from)[edge as usize];
            if walk.numbers[to as usize] == NONE {
                walk.meet(to, walk.numbers[from as usize]);
                stack.push((to, edges(to)));
            }
        }
        walk
    }

    fn meet(&mut self, node: u32, parent: u32) {
        self.numbers[node as usize] = self.preorder.len() as u32;
        self.preorder.push(node);
        self.parents.push(parent);
    }

    /// By node, its immediate dominator; `NONE` for the root and what was never met.
    pub(super) fn dominators(&self, graph: &Graph) -> Vec<u32> {
        let (first, predecessors) = self.predecessors(graph);
        let mut forest = Forest::new(&self.parents);
        // At first the semidominator, then the immediate one.
        let mut dominators = self.parents.clone();
        let mut semidominators = vec![0; self.preorder.len()];
        for number in (1..self.preorder.len()).rev() {
            let mut least = self.parents[number];
            let node = self.preorder[number] as usize;
            for predecessor in &predecessors[first[node] as usize..first[node + 1] as usize] {
                // What has a smaller number is not linked, and its least is itself.
                let reached = match *predecessor <= number as u32 {
                    true => *predecessor,
                    false => forest.least(*predecessor, number as u32 + 1),
                };
                least = least.min(reached);
            }
            forest.nodes[number].least = least;
            semidominators[number] = least;
        }
        for number in 1..self.preorder.len() {
            let mut dominator = dominators[number];
            while dominator > semidominators[number] {
                dominator = dominators[dominator as usize];
            }
            dominators[number] = dominator;
        }
        let mut by_node = vec![NONE; graph.node_count()];
        for (node, dominator) in self.preorder.iter().zip(&dominators).skip(1) {
            by_node[*node as usize] = self.preorder[*dominator as usize];
        }
        by_node
    }

    /// By node, the numbers of all nodes with an edge to it. Goes through the graph in its own order, in which its
    /// arrays lie in memory, and not in that of the numbers.
    fn predecessors(&self, graph: &Graph) -> (Vec<u32>, Vec<u32>) {
        let reached = || (0..).zip(&self.numbers).filter(|(_, number)| **number != NONE);
        let mut first = vec![0_u32; graph.node_count() + 2];
        for (node, _) in reached() {
            for to in graph.referents(node) {
                first[*to as usize + 2] += 1;
            }
        }
        for node in 1..first.len() {
            first[node] += first[node - 1];
        }
        let mut predecessors = vec![0; first.last().map_or(0, |all| *all as usize)];
        for (node, number) in reached() {
            for to in graph.referents(node) {
                let end = &mut first[*to as usize + 1];
                predecessors[*end as usize] = *number;
                *end += 1;
            }
        }
        (first, predecessors)
    }
}

/// The walk's tree, as far as it is linked: from some number upwards.
struct Forest {
    nodes: Vec<Linked>,
    path: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Linked {
    ancestor: u32,
    /// The least semidominator on the way up to, but without, `ancestor`.
    least: u32,
}

impl Forest {
    fn new(parents: &[u32]) -> Self {
        let linked = |(number, parent): (usize, &u32)| Linked {
            // The root has no ancestor, which is less than any that is linked.
            ancestor: if number == 0 { 0 } else { *parent },
            least: number as u32,
        };
        Self { nodes: parents.iter().enumerate().map(linked).collect(), path: Vec::new() }
    }

    /// The least semidominator from `number` up to the top of its linked tree; compresses the way.
    #[inline]
    fn least(&mut self, number: u32, linked: u32) -> u32 {
        if self.nodes[number as usize].ancestor < linked {
            return self.nodes[number as usize].least;
        }
        self.compress(number, linked)
    }

    fn compress(&mut self, number: u32, linked: u32) -> u32 {
        let mut at = number;
        while self.nodes[at as usize].ancestor >= linked {
            self.path.push(at);
            at = self.nodes[at as usize].ancestor;
        }
        let mut above = self.nodes[at as usize];
        while let Some(at) = self.path.pop() {
            let node = &mut self.nodes[at as usize];
            node.ancestor = above.ancestor;
            node.least = node.least.min(above.least);
            above = *node;
        }
        above.least
    }
}
