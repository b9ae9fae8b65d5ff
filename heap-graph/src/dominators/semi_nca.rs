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
    /// By number: the number of the node it was met from.
    parents: Vec<u32>,
    /// By node; one more than there are nodes.
    places: Vec<Place>,
    /// Edges to nodes that had been met before, but for those to the root.
    others: Vec<Other>,
}

/// What the walk asks of a node at once lies together in memory.
#[derive(Clone, Copy)]
struct Place {
    /// Where its edges start.
    first: u32,
    /// `NONE` if not yet met.
    number: u32,
}

/// An edge that is not of the walk's tree.
struct Other {
    /// The number of the node it comes from.
    from: u32,
    /// The number of the node it leads to; once edges are linked, the place of the one before that leads to the
    /// same node, or `NONE`.
    to: u32,
}

/// A node that was met and not yet left, and which of its edges are yet to be taken.
struct Open {
    node: u32,
    number: u32,
    first: u32,
    end: u32,
}

impl Walk {
    /// Two steps for each node.
    pub(super) fn new(graph: &Graph, steps: &mut Steps<'_>) -> Result<Self, Cancelled> {
        let nodes = graph.node_count();
        let mut places = Vec::with_capacity(nodes + 1);
        for part in chunks(0..nodes + 1) {
            steps.steps(part.len())?;
            places
                .extend(graph.first_edges()[part].iter().map(|first| Place { first: *first, number: NONE }));
        }
        let mut walk = Self {
            preorder: Vec::with_capacity(nodes),
            postorder: Vec::with_capacity(nodes),
            parents: Vec::with_capacity(nodes),
            places,
            // Where all nodes are reached it does not grow.
            others: Vec::with_capacity((graph.edge_count() + 1).saturating_sub(nodes)),
        };
        let mut stack = Vec::new();
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
                let soon = walk.places[graph.referent(*end as usize - 1) as usize + 1].first;
                prefetch(graph.all_referents(), (soon as usize).wrapping_sub(1));
            }
            if let Some(ahead) = end.checked_sub(AHEAD as u32)
                && ahead >= *first
            {
                prefetch(&walk.places, graph.referent(ahead as usize) as usize);
            }
            match walk.places[to as usize].number {
                NONE => {
                    stack.push(walk.meet(graph, to, from));
                    if walk.preorder.len() == next_look {
                        steps.steps(LOOK)?;
                        next_look += LOOK;
                    }
                }
                0 => {}
                number if number == from => {}
                number => walk.others.push(Other { from, to: number }),
            }
        }
        steps.steps(walk.preorder.len() + LOOK - next_look)?;
        Ok(walk)
    }

    #[inline]
    fn meet(&mut self, graph: &Graph, node: u32, parent: u32) -> Open {
        let number = self.preorder.len() as u32;
        self.places[node as usize].number = number;
        self.preorder.push(node);
        self.parents.push(parent);
        let (first, end) = (self.places[node as usize].first, self.places[node as usize + 1].first);
        for to in graph.all_referents()[first as usize..end as usize].iter().rev().take(AHEAD) {
            prefetch(&self.places, *to as usize);
        }
        Open { node, number, first, end }
    }

    /// Links the edges that lead to the same node: by number, the place of the last of them, or `NONE`.
    fn link(&mut self) -> Vec<u32> {
        let mut last = vec![NONE; self.preorder.len()];
        for place in 0..self.others.len() {
            if let Some(ahead) = self.others.get(place + AHEAD) {
                prefetch(&last, ahead.to as usize);
            }
            let to = &mut self.others[place].to;
            *to = core::mem::replace(&mut last[*to as usize], place as u32);
        }
        last
    }

    /// By number, the number of the immediate dominator; the root has itself. Two steps for each node.
    pub(super) fn dominators(&mut self, steps: &mut Steps<'_>) -> Result<Vec<u32>, Cancelled> {
        // Each place is read for the last time when the semidominator that replaces it is known.
        let mut semidominators = self.link();
        let others = core::mem::take(&mut self.others);
        let mut forest = Forest::new(core::mem::take(&mut self.places), &self.parents);
        for part in chunks(1..self.preorder.len()).rev() {
            steps.steps(part.len())?;
            for number in part.rev() {
                if let Some(ahead) = number.checked_sub(2 * AHEAD) {
                    prefetch(&others, semidominators[ahead] as usize);
                }
                if let Some(ahead) = number.checked_sub(AHEAD)
                    && let Some(other) = others.get(semidominators[ahead] as usize)
                {
                    prefetch(&forest.nodes, other.from as usize);
                }
                let mut semidominator = self.parents[number];
                let linked = number as u32 + 1;
                let mut place = semidominators[number];
                // There is none less than the root.
                while semidominator != 0
                    && let Some(other) = others.get(place as usize)
                {
                    // A smaller number is an ancestor's, or there would have been a way down to it before.
                    semidominator = semidominator.min(forest.least(other.from, linked));
                    place = other.to;
                }
                forest.nodes[number].least = semidominator;
                semidominators[number] = semidominator;
            }
        }
        drop((forest, others));
        climb(core::mem::take(&mut self.parents), &semidominators, steps)
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
    /// Where the walk's places were, so that the system need not clear as much memory once more.
    fn new(places: Vec<Place>, parents: &[u32]) -> Self {
        let linked = |(number, (_, parent)): (usize, (Place, &u32))| Linked {
            // The root has no ancestor, which is less than any that is linked.
            ancestor: if number == 0 { 0 } else { *parent },
            least: number as u32,
        };
        Self { nodes: places.into_iter().zip(parents).enumerate().map(linked).collect(), path: Vec::new() }
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
