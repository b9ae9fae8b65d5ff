//! The exact retained sizes of groups of nodes.
//!
//! A dominator tree contains the bytes that each node retains alone. Several nodes together retain more: ten tasks
//! that share a block keep the block alive, but no single task dominates the block. A group retains a node if every
//! path from the root to the node goes through a member of the group.
//!
//! Some nodes have an edge from their immediate dominator. A group retains such a node exactly if the node is a
//! member or the group retains the dominator. Only the other nodes need a search. Several paths from the dominator
//! meet in such a node, so it is called a *meeting point* here. The search runs on a condensed graph. It contains the
//! meeting points, the nodes with edges to meeting points, and the members of each group in which at least two members
//! have edges out of their dominator subtrees. For every other group, the result is the sum over the nodes that its
//! members dominate. The search processes 256 groups at once, with one bit for each group.

use std::collections::VecDeque;

use super::DominatorTree;
use crate::graph::{HeapNode, NodeIndex};
use crate::progress::{AnalysisProgress, CancelledError, StepCounter};

const NONE: u32 = u32::MAX;
/// A set of the groups in one search. A search spends most time on random memory accesses, so four words take little
/// longer than one word.
type GroupSet = [u64; 4];
/// The number of groups in one set.
const BATCH: usize = 256;
/// The number of steps of progress that the analysis counts for each node before the search.
const STEPS: usize = 4;

/// The bytes that each group retains, each byte once. `groups_of` returns the numbers of a node's groups. Each number
/// must be less than `groups`.
pub(super) fn retained_by_each<I: Iterator<Item = usize>>(
    tree: &DominatorTree<'_>,
    groups: usize,
    groups_of: impl Fn(u32) -> I,
    progress: &AnalysisProgress,
) -> Result<Vec<u128>, CancelledError> {
    tree.prepare_lists(progress)?;
    let mut steps = StepCounter::new(progress, tree.graph().node_count() * STEPS);
    let preorder = Preorder::new(tree, &mut steps)?;
    let meeting = MeetingPoints::new(tree, &preorder, &mut steps)?;
    let mut open = OpenGroups::new(groups);
    // The groups that may retain more than the nodes that their members dominate.
    let mut crossing = vec![0_u32; groups];
    let mut path: Vec<u32> = Vec::new();
    for (place, node) in preorder.nodes.iter().enumerate() {
        steps.step()?;
        while let Some(last) = path.pop_if(|last| !preorder.dominates(*last, place as u32)) {
            groups_of(preorder.nodes[last as usize]).for_each(|group| open.leave(group));
        }
        path.push(place as u32);
        for group in groups_of(*node) {
            open.enter(group, || tree.retained_size(NodeIndex(*node)).unwrap_or_default());
            crossing[group] += u32::from(meeting.is_left_from(&preorder, *node));
        }
    }
    let mut retained = open.retained;
    let searched: Vec<usize> = (0..groups).filter(|group| crossing[*group] > 1).collect();
    if searched.is_empty() {
        return Ok(retained);
    }
    let mut place_of = vec![NONE; groups];
    searched.iter().enumerate().for_each(|(place, group)| place_of[*group] = place as u32);
    let searched_of = |node: u32| groups_of(node).map(|group| place_of[group]).filter(|place| *place != NONE);
    let is_member = |node| searched_of(node).next().is_some();
    drop(steps);
    let condensed = CondensedGraph::new(tree, &preorder, &meeting, is_member, progress)?;
    // The members of the groups in each batch: a node, and the number of its group in the batch.
    let mut members = vec![Vec::new(); searched.len().div_ceil(BATCH)];
    for (at, node) in condensed.nodes.iter().enumerate() {
        for place in searched_of(*node) {
            members[place as usize / BATCH].push((at as u32, place % BATCH as u32));
        }
    }
    for (part, members) in searched.chunks(BATCH).zip(members) {
        part.iter().for_each(|group| retained[*group] = 0);
        condensed.search(&members, progress, |node, blocked| {
            let size = tree.retained_size(NodeIndex(node)).unwrap_or_default();
            for (word, mut bits) in blocked.into_iter().enumerate() {
                while bits != 0 {
                    if let Some(group) = part.get(64 * word + bits.trailing_zeros() as usize) {
                        retained[*group] += size;
                    }
                    bits &= bits - 1;
                }
            }
        })?;
    }
    Ok(retained)
}

/// The groups with a node on the path from the root to the current node.
struct OpenGroups {
    nodes: Vec<u32>,
    /// The sums of the groups, in bytes.
    retained: Vec<u128>,
}

impl OpenGroups {
    fn new(groups: usize) -> Self {
        Self { nodes: vec![0; groups], retained: vec![0; groups] }
    }

    /// Adds a node to a group. Adds the node's bytes only if the node is not below another node of the group: the bytes
    /// of the upper node already include them.
    fn enter(&mut self, group: usize, retained: impl FnOnce() -> u128) {
        if self.nodes[group] == 0 {
            self.retained[group] += retained();
        }
        self.nodes[group] += 1;
    }

    fn leave(&mut self, group: usize) {
        self.nodes[group] -= 1;
    }
}

/// The nodes of a dominator tree. Each node precedes the nodes that it dominates.
struct Preorder {
    nodes: Vec<u32>,
    /// The place of each node in `nodes`; `NONE` for unreachable nodes.
    places: Vec<u32>,
    /// For the node at each place: the place after the last node that it dominates.
    ends: Vec<u32>,
    depths: Vec<u32>,
}

impl Preorder {
    fn new(tree: &DominatorTree<'_>, steps: &mut StepCounter<'_>) -> Result<Self, CancelledError> {
        let mut order = Self {
            nodes: Vec::new(),
            places: vec![NONE; tree.graph().node_count()],
            ends: Vec::new(),
            depths: Vec::new(),
        };
        order.enter(NodeIndex::ROOT, 0);
        let mut path = vec![(0, tree.immediately_dominated(NodeIndex::ROOT))];
        while let Some((place, children)) = path.last_mut() {
            if let Some(child) = children.next().map(HeapNode::index) {
                steps.step()?;
                let place = order.enter(child, path.len() as u32);
                path.push((place, tree.immediately_dominated(child)));
            } else {
                order.ends[*place] = order.nodes.len() as u32;
                path.pop();
            }
        }
        Ok(order)
    }

    fn enter(&mut self, node: NodeIndex, depth: u32) -> usize {
        let place = self.nodes.len();
        self.places[node.get()] = place as u32;
        self.nodes.push(node.0);
        self.ends.push(0);
        self.depths.push(depth);
        place
    }

    /// Whether the node at place `one` dominates the node at place `other`, or both are the same node.
    fn dominates(&self, one: u32, other: u32) -> bool {
        one <= other && other < self.ends[one as usize]
    }
}

/// The place of a node's immediate dominator.
fn dominator_place(tree: &DominatorTree<'_>, preorder: &Preorder, node: u32) -> Option<u32> {
    Some(preorder.places[tree.arrays.dominator(node)? as usize])
}

struct MeetingPoints {
    /// For each place: whether the node is a meeting point.
    are: Vec<bool>,
    /// For each place: edges lead from the node at the place, and from the nodes below it, to meeting points. The value
    /// is the smallest depth of the immediate dominators of these meeting points.
    shallowest: Vec<u32>,
}

impl MeetingPoints {
    fn new(
        tree: &DominatorTree<'_>,
        preorder: &Preorder,
        steps: &mut StepCounter<'_>,
    ) -> Result<Self, CancelledError> {
        let graph = tree.graph();
        let mut are = vec![true; preorder.nodes.len()];
        are[0] = false;
        for node in &preorder.nodes {
            steps.step()?;
            for to in graph.referents(*node) {
                if tree.arrays.dominator(*to) == Some(*node) {
                    are[preorder.places[*to as usize] as usize] = false;
                }
            }
        }
        let mut points = Self { are, shallowest: vec![NONE; preorder.nodes.len()] };
        for place in (0..preorder.nodes.len()).rev() {
            steps.step()?;
            let node = preorder.nodes[place];
            let mut shallowest = points.shallowest[place];
            for to in points.met_from(tree, preorder, node) {
                let above = dominator_place(tree, preorder, preorder.nodes[to as usize]);
                let above = above.expect("each meeting point has a dominator");
                shallowest = shallowest.min(preorder.depths[above as usize]);
            }
            points.shallowest[place] = shallowest;
            if let Some(above) = dominator_place(tree, preorder, node) {
                let above = &mut points.shallowest[above as usize];
                *above = shallowest.min(*above);
            }
        }
        Ok(points)
    }

    /// The places of the meeting points to which a node has edges. Leaves out meeting points that dominate the node:
    /// an edge back to a dominator adds no path from the root to the dominator.
    fn met_from<'a>(
        &'a self,
        tree: &'a DominatorTree<'_>,
        preorder: &'a Preorder,
        node: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        let from = preorder.places[node as usize];
        let to = tree.graph().referents(node).iter().map(|to| preorder.places[*to as usize]);
        to.filter(move |to| self.are[*to as usize] && !preorder.dominates(*to, from))
    }

    /// Whether an edge leads from the dominator subtree of `node` to a meeting point outside of that subtree.
    fn is_left_from(&self, preorder: &Preorder, node: u32) -> bool {
        let place = preorder.places[node as usize] as usize;
        self.shallowest[place] < preorder.depths[place]
    }
}

/// The nodes that the search needs, in preorder.
struct CondensedGraph {
    nodes: Vec<u32>,
    /// For each node, its nearest dominator in this graph. For the root, the root itself.
    above: Vec<u32>,
    /// The start of each node's successors in `successors`, and the end of the last node's successors.
    starts: Vec<u32>,
    /// The successors of each node: the meeting points to which the node has edges, and the other nodes whose nearest
    /// dominator in this graph is the node.
    successors: Vec<u32>,
}

impl CondensedGraph {
    fn new(
        tree: &DominatorTree<'_>,
        preorder: &Preorder,
        meeting: &MeetingPoints,
        is_member: impl Fn(u32) -> bool,
        progress: &AnalysisProgress,
    ) -> Result<Self, CancelledError> {
        let mut steps = StepCounter::new(progress, preorder.nodes.len());
        let (mut nodes, mut above) = (Vec::new(), Vec::new());
        // For each node of the full preorder, its index in this graph.
        let mut here = vec![NONE; preorder.nodes.len()];
        let mut way: Vec<u32> = Vec::new();
        for (place, node) in preorder.nodes.iter().enumerate() {
            steps.step()?;
            let matters = place == 0
                || meeting.are[place]
                || is_member(*node)
                || meeting.met_from(tree, preorder, *node).next().is_some();
            if !matters {
                continue;
            }
            let is_above = |last: &u32| {
                preorder.dominates(preorder.places[nodes[*last as usize] as usize], place as u32)
            };
            while way.pop_if(|last| !is_above(last)).is_some() {}
            here[place] = nodes.len() as u32;
            above.push(way.last().copied().unwrap_or(0));
            way.push(here[place]);
            nodes.push(*node);
        }
        let mut edges = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            if at > 0 && !meeting.are[preorder.places[*node as usize] as usize] {
                edges.push((above[at], at as u32));
            }
            edges.extend(meeting.met_from(tree, preorder, *node).map(|to| (at as u32, here[to as usize])));
        }
        edges.sort_unstable();
        edges.dedup();
        let mut starts = vec![0_u32; nodes.len() + 1];
        edges.iter().for_each(|(from, _)| starts[*from as usize + 1] += 1);
        (1..starts.len()).for_each(|node| starts[node] += starts[node - 1]);
        Ok(Self { nodes, above, starts, successors: edges.into_iter().map(|(_, to)| to).collect() })
    }

    /// Finds the nodes that groups retain. `members` contains each member of a group: its place and the group's bit.
    /// `each` receives a node with the groups that retain the node but not its nearest dominator among these nodes.
    fn search(
        &self,
        members: &[(u32, u32)],
        progress: &AnalysisProgress,
        mut each: impl FnMut(u32, GroupSet),
    ) -> Result<(), CancelledError> {
        let mut groups = vec![GroupSet::default(); self.nodes.len()];
        members.iter().for_each(|(at, bit)| groups[*at as usize][*bit as usize / 64] |= 1 << (bit % 64));
        // For each node: the groups that some path from the root to the node avoids. The sets only grow.
        let mut around = vec![GroupSet::default(); self.nodes.len()];
        around[0] = groups[0].map(|word| !word);
        let mut again = VecDeque::new();
        let mut waits = vec![false; self.nodes.len()];
        let mut steps = StepCounter::new(progress, self.nodes.len());
        for at in 0..self.nodes.len() {
            steps.step()?;
            self.spread(at, &groups, &mut around, |to| {
                if to <= at && !core::mem::replace(&mut waits[to], true) {
                    again.push_back(to);
                }
            });
        }
        while !again.is_empty() {
            progress.expect(again.len() as u64);
            for _ in 0..again.len() {
                let Some(at) = again.pop_front() else { break };
                steps.step()?;
                waits[at] = false;
                self.spread(at, &groups, &mut around, |to| {
                    if !core::mem::replace(&mut waits[to], true) {
                        again.push_back(to);
                    }
                });
            }
        }
        each(self.nodes[0], around[0].map(|word| !word));
        for at in 1..self.nodes.len() {
            let above = around[self.above[at] as usize];
            let blocked = core::array::from_fn(|word| !around[at][word] & above[word]);
            if blocked != GroupSet::default() {
                each(self.nodes[at], blocked);
            }
        }
        Ok(())
    }

    /// Adds the groups that a path to a node avoids to the sets of the node's successors. Calls `changed` for each
    /// change.
    fn spread(
        &self,
        at: usize,
        groups: &[GroupSet],
        around: &mut [GroupSet],
        mut changed: impl FnMut(usize),
    ) {
        let from = around[at];
        for to in &self.successors[self.starts[at] as usize..self.starts[at + 1] as usize] {
            let to = *to as usize;
            let (old, own) = (around[to], groups[to]);
            let new = core::array::from_fn(|word| old[word] | from[word] & !own[word]);
            if new != old {
                around[to] = new;
                changed(to);
            }
        }
    }
}
