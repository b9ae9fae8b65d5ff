//! A stored breadth-first walk, from which all paths from one node can be read.

use super::{BackEdge, GraphPath, PathPart};
use crate::graph::{Graph, NodeId, NodeIndex};
use crate::progress::{AnalysisProgress, CancelledError, StepCounter};
use crate::walk::BreadthFirst;

const NEVER: u32 = u32::MAX;

/// A breadth-first walk from the root of a graph, stored for paths to many nodes. It takes 8 bytes for each node.
/// Each call of [`paths`](Self::paths) then examines the edges once, without another walk.
///
/// ```
/// use heap_graph::paths::PathTree;
/// use heap_graph::{GraphBuilder, NodeId, NodeIndex, NodeParts, AnalysisProgress, shortest_paths};
///
/// let mut builder = GraphBuilder::new();
/// let name = builder.text("Node").unwrap();
/// builder.node(NodeParts::new(NodeId(8), 24, name)).unwrap();
/// builder.edge(NodeId(16), None).unwrap();
/// builder.node(NodeParts::new(NodeId(16), 24, name)).unwrap();
/// let graph = builder.finish().unwrap();
///
/// let tree = PathTree::watched(&graph, &AnalysisProgress::new()).unwrap();
/// let node = graph.find(NodeId(16)).unwrap().index();
/// let paths = tree.paths(&graph, node, 3);
/// assert_eq!(paths, shortest_paths(&graph, NodeIndex::ROOT, &[node], 3).paths[0].1);
/// ```
#[derive(Debug)]
pub struct PathTree {
    /// For each node: the turn at which the walk first takes the node's edges.
    turns: Box<[u32]>,
    /// For each node: the edge by which the walk first arrives.
    edges: Box<[u32]>,
    /// The turn at which the walk takes the root's edges again, if an edge leads back to the root.
    again: u32,
}

impl PathTree {
    /// Walks from the root, with an [`AnalysisProgress`], which shows the progress and can cancel the walk.
    ///
    /// # Errors
    ///
    /// Returns a [`CancelledError`] if the walk was cancelled.
    pub fn watched(graph: &Graph, progress: &AnalysisProgress) -> Result<Self, CancelledError> {
        let root = NodeIndex::ROOT.0;
        let mut turns = vec![NEVER; graph.node_count()];
        let mut edges = vec![NEVER; graph.node_count()];
        let (mut turn, mut again) = (0, NEVER);
        let mut walk = BreadthFirst::new(graph);
        let mut steps = StepCounter::new(progress, graph.node_count());
        while let Some(from) = walk.next() {
            steps.step()?;
            if from == root && turn > 0 {
                again = turn;
            } else {
                turns[from as usize] = turn;
            }
            turn += 1;
            for edge in graph.edge_range(from) {
                let to = graph.referent(edge);
                if walk.arrive(to) {
                    edges[to as usize] = edge as u32;
                }
            }
        }
        Ok(Self { turns: turns.into(), edges: edges.into(), again })
    }

    /// Up to `max` paths from the root to a node, the same as from [`shortest_paths`](super::shortest_paths).
    ///
    /// # Panics
    ///
    /// Panics if the walk was in another graph, with fewer nodes.
    pub fn paths<'a>(&self, graph: &'a Graph, target: NodeIndex, max: usize) -> Vec<GraphPath<'a>> {
        let root = NodeIndex::ROOT.0;
        // The edges to the target that the walk takes, in the walk's order.
        let mut arriving: Vec<(u32, usize, u32)> = Vec::new();
        for (edge, to) in graph.all_referents().iter().enumerate() {
            if *to != target.0 {
                continue;
            }
            let from = graph.source(edge);
            let turn = self.turns[from as usize];
            if turn != NEVER {
                arriving.push((turn, edge, from));
            }
            if from == root && self.again != NEVER {
                arriving.push((self.again, edge, from));
            }
        }
        arriving.sort_unstable();
        arriving.truncate(max);
        let back = |edge: usize, from| (from, graph.edge_name(edge));
        let before = |(from, _): &BackEdge| {
            (*from != root).then(|| {
                let edge = self.edges[*from as usize] as usize;
                back(edge, graph.source(edge))
            })
        };
        let part = |(from, name): BackEdge| PathPart {
            predecessor: NodeId(graph.ids()[from as usize]),
            edge: name.map(|name| graph.text(name)),
        };
        let paths = arriving.into_iter().map(|(_, edge, from)| {
            let backwards: Vec<_> = core::iter::successors(Some(back(edge, from)), before).collect();
            backwards.into_iter().rev().map(part).collect()
        });
        paths.collect()
    }

    /// The memory of the walk in bytes.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.turns) + size_of_val(&*self.edges)
    }
}
