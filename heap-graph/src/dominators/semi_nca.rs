//! Semi-NCA: semidominators as Lengauer and Tarjan find them, with path compression, and from them
//! immediate dominators by climbing the tree that is there so far, by `climb`.
//!
//! Nodes are numbered in the order in which a depth-first walk meets them; "less" is then "nearer the root".
//! All but the walk itself works with numbers: what belongs together in the tree then lies together in memory.

use super::NONE;
use super::climb::climb;
use crate::graph::Graph;
use crate::prefetch::{AHEAD, prefetch};
use crate::progress::{Cancelled, LOOK, Steps, chunks};

/// A depth-first walk from the root that takes each node's edges from the last to the first.
pub(super) struct Walk {
    /// Nodes as they are met.
    pub(super) preorder: Vec<u32>,
    /// Nodes as they are left.
    pub(super) postorder: Vec<u32>,
    /// From nodes to their numbers; `NONE` if never met.
    pub(super) numbers: Vec<u32>,
    /// By number: the number of the node it was met from.
    parents: Vec<u32>,
}

/// A node that was met and not yet left, and which of its edges are yet to be taken.
struct Open {
    node: u32,
    number: u32,
    first: u32,
    end: u32,
}

impl Walk {
    /// A step for each node.
    pub(super) fn new(graph: &Graph, steps: &mut Steps<'_>) -> Result<Self, Cancelled> {
        let nodes = graph.node_count();
        let mut walk = Self {
            preorder: Vec::with_capacity(nodes),
            postorder: Vec::with_capacity(nodes),
            numbers: vec![NONE; nodes],
            parents: Vec::with_capacity(nodes),
        };
        // One bit for each node: this stays in the cache, where the numbers do not.
        let mut met = vec![0_u64; nodes.div_ceil(64)];
        let mut stack = Vec::new();
        met[0] = 1;
        stack.push(walk.meet(graph, 0, NONE));
        let mut next_look = LOOK;
        while let Some(Open { node, number, first, end }) = stack.last_mut() {
            if first == end {
                walk.postorder.push(*node);
                stack.pop();
                continue;
            }
            *end -= 1;
            let (to, from) = (graph.referent(*end as usize), *number);
            if first < end {
                graph.prefetch_edges(graph.referent(*end as usize - 1));
            }
            let (word, bit) = (&mut met[to as usize / 64], 1 << (to % 64));
            if *word & bit == 0 {
                *word |= bit;
                stack.push(walk.meet(graph, to, from));
                if walk.preorder.len() == next_look {
                    steps.steps(LOOK)?;
                    next_look += LOOK;
                }
            }
        }
        steps.steps(walk.preorder.len() + LOOK - next_look)?;
        Ok(walk)
    }

    #[inline]
    fn meet(&mut self, graph: &Graph, node: u32, parent: u32) -> Open {
        let number = self.preorder.len() as u32;
        self.numbers[node as usize] = number;
        self.preorder.push(node);
        self.parents.push(parent);
        let edges = graph.edge_range(node);
        for to in graph.referents(node).iter().rev().take(AHEAD) {
            graph.prefetch_node(*to);
        }
        Open { node, number, first: edges.start as u32, end: edges.end as u32 }
    }

    /// By number, the number of the immediate dominator; the root has itself. Three steps for each node.
    pub(super) fn dominators(&self, graph: &Graph, steps: &mut Steps<'_>) -> Result<Vec<u32>, Cancelled> {
        let Predecessors { first, before, mut least } = self.predecessors(graph, steps)?;
        let mut forest = Forest::new(&self.parents);
        for part in chunks(1..self.preorder.len()).rev() {
            steps.steps(part.len())?;
            for number in part.rev() {
                let mut semidominator = least[number];
                let linked = number as u32 + 1;
                let range = first[number] as usize..first[number + 1] as usize;
                for place in range.rev() {
                    prefetch(&forest.nodes, before[place.saturating_sub(AHEAD)] as usize);
                    // There is none less than the root.
                    if semidominator == 0 {
                        break;
                    }
                    semidominator = semidominator.min(forest.least(before[place], linked));
                }
                forest.nodes[number].least = semidominator;
                least[number] = semidominator;
            }
        }
        drop(forest);
        climb(&self.parents, &least, steps)
    }

    /// Goes through the graph in its own order, in which its arrays lie in memory, and not in that of the numbers.
    fn predecessors(&self, graph: &Graph, steps: &mut Steps<'_>) -> Result<Predecessors, Cancelled> {
        // The least of the predecessors that are ancestors, and how many others there are.
        let mut least: Vec<(u32, u32)> = self.parents.iter().map(|parent| (*parent, 0)).collect();
        // No edge of the tree is among them.
        let mut others = Vec::with_capacity((graph.edge_count() + 1).saturating_sub(self.preorder.len()));
        for part in chunks(0..self.numbers.len()) {
            steps.steps(part.len())?;
            for node in part {
                let number = self.numbers[node];
                if number == NONE {
                    continue;
                }
                for edge in graph.edge_range(node as u32) {
                    if let Some(ahead) = graph.all_referents().get(edge + 2 * AHEAD) {
                        prefetch(&self.numbers, *ahead as usize);
                    }
                    if let Some(ahead) = graph.all_referents().get(edge + AHEAD) {
                        prefetch(&least, self.numbers[*ahead as usize] as usize);
                    }
                    let to = self.numbers[graph.referent(edge) as usize];
                    if number < to {
                        // A smaller number is an ancestor's, or there would have been a way down to it before.
                        let least = &mut least[to as usize].0;
                        *least = (*least).min(number);
                    } else if number > to && to != 0 {
                        least[to as usize].1 += 1;
                        others.push((to, number));
                    }
                }
            }
        }
        let mut first = Vec::with_capacity(least.len() + 1);
        let mut sum = 0;
        for (_, count) in &mut least {
            first.push(sum);
            sum += *count;
            *count = sum;
        }
        first.push(sum);
        let mut before = vec![0; others.len()];
        for (place, (to, number)) in others.iter().enumerate() {
            if let Some((ahead, _)) = others.get(place + AHEAD) {
                prefetch(&least, *ahead as usize);
            }
            let end = &mut least[*to as usize].1;
            *end -= 1;
            before[*end as usize] = *number;
        }
        Ok(Predecessors { first, before, least: least.into_iter().map(|(least, _)| least).collect() })
    }
}

/// Predecessors, by number.
struct Predecessors {
    /// Where each node's part of `before` starts; one more than there are nodes.
    first: Vec<u32>,
    /// Those that are no ancestors: their numbers are greater.
    before: Vec<u32>,
    /// The least of those that are ancestors.
    least: Vec<u32>,
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
        let node = self.nodes[number as usize];
        if node.ancestor < linked {
            return node.least;
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
