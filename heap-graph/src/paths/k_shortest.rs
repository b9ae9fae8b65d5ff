//! The shortest paths. They may share their last edge.

use super::{GraphPath, PathPart};
use crate::graph::{Graph, NodeId, NodeIndex};

const UNREACHED: u32 = u32::MAX;

/// The `k` shortest paths that visit no node twice. The shortest is first, and paths of the same length are in the
/// order of edges. Parallel edges with the same name count as one edge if they are at most 64 edges apart.
///
/// The paths of [`shortest_paths`](super::shortest_paths) differ in their last edge, but the paths of this function may
/// have the same last edge. The function examines at most `effort` edges, and returns the paths found so far: the
/// number of candidate paths may grow exponentially with the graph.
pub fn k_shortest_paths<'a>(
    graph: &'a Graph,
    start: NodeIndex,
    target: NodeIndex,
    k: usize,
    effort: u64,
) -> Vec<GraphPath<'a>> {
    let distances = distances_to(graph, target.0);
    let mut found = Vec::new();
    let shortest = distances[start.get()];
    if shortest == UNREACHED || start == target || k == 0 {
        return found;
    }
    let mut search = PathSearch {
        graph,
        distances,
        target: target.0,
        on_path: vec![false; graph.node_count()],
        effort,
        could_be_longer: true,
    };
    let mut length = shortest;
    // A path without cycles has fewer edges than the graph has nodes.
    while found.len() < k
        && search.effort > 0
        && search.could_be_longer
        && (length as usize) < graph.node_count()
    {
        search.could_be_longer = false;
        search.find_of_length(start.0, length, k, &mut found);
        length += 1;
    }
    found
}

struct PathSearch<'a> {
    graph: &'a Graph,
    distances: Vec<u32>,
    target: u32,
    on_path: Vec<bool>,
    effort: u64,
    /// Whether the search has left out an edge only because the edge leads to longer paths.
    could_be_longer: bool,
}

impl<'a> PathSearch<'a> {
    /// Finds all paths of exactly this length, until there are `k` paths in total.
    fn find_of_length(&mut self, start: u32, length: u32, k: usize, found: &mut Vec<GraphPath<'a>>) {
        // The nodes on the path, each with the edges that are not taken yet.
        let mut stack = vec![(start, self.graph.edge_range(start))];
        self.on_path[start as usize] = true;
        while let Some((node, edges)) = stack.last_mut() {
            let node = *node;
            let edge = if found.len() < k && self.effort > 0 { edges.next() } else { None };
            let Some(edge) = edge else {
                self.on_path[node as usize] = false;
                stack.pop();
                continue;
            };
            self.effort -= 1;
            let to = self.graph.referent(edge);
            let left = length - stack.len() as u32;
            let distance = self.distances[to as usize];
            if distance == UNREACHED || self.on_path[to as usize] || self.is_repeated(node, edge) {
                continue;
            }
            // A path ends when it reaches the target.
            if distance > left || (to == self.target && left > 0) {
                self.could_be_longer |= distance > left;
                continue;
            }
            if left == 0 {
                found.push(self.path(&stack));
                continue;
            }
            if distance < left {
                self.could_be_longer = true;
            }
            self.on_path[to as usize] = true;
            stack.push((to, self.graph.edge_range(to)));
        }
    }

    /// Whether an earlier edge of the node has the same target and the same name.
    fn is_repeated(&self, node: u32, edge: usize) -> bool {
        let range = self.graph.edge_range(node);
        // Parallel edges are usually close together, so a comparison with 64 edges finds them, even for a node with
        // many edges.
        let near = range.start.max(edge.saturating_sub(64))..edge;
        let (to, name) = (self.graph.referent(edge), self.graph.edge_name(edge));
        near.into_iter().any(|other| self.graph.referent(other) == to && self.graph.edge_name(other) == name)
    }

    fn path(&self, stack: &[(u32, core::ops::Range<usize>)]) -> GraphPath<'a> {
        let part = |(node, edges): &(u32, core::ops::Range<usize>)| PathPart {
            predecessor: NodeId(self.graph.ids()[*node as usize]),
            // `edges` starts after the edge that the path uses.
            edge: self.graph.edge_name(edges.start - 1).map(|name| self.graph.text(name)),
        };
        stack.iter().map(part).collect()
    }
}

/// For each node, the length of the shortest path to the target.
fn distances_to(graph: &Graph, target: u32) -> Vec<u32> {
    let nodes = graph.node_count();
    let mut first = vec![0_u32; nodes + 2];
    for node in 0..nodes as u32 {
        graph.referents(node).iter().for_each(|to| first[*to as usize + 2] += 1);
    }
    for place in 1..first.len() {
        first[place] += first[place - 1];
    }
    let mut predecessors = vec![0; graph.edge_count()];
    for node in 0..nodes as u32 {
        for to in graph.referents(node) {
            let end = &mut first[*to as usize + 1];
            predecessors[*end as usize] = node;
            *end += 1;
        }
    }
    let mut distances = vec![UNREACHED; nodes];
    distances[target as usize] = 0;
    let mut queue = vec![target];
    let mut next = 0;
    while let Some(node) = queue.get(next).copied() {
        next += 1;
        for before in &predecessors[first[node as usize] as usize..first[node as usize + 1] as usize] {
            if distances[*before as usize] == UNREACHED {
                distances[*before as usize] = distances[node as usize] + 1;
                queue.push(*before);
            }
        }
    }
    distances
}
