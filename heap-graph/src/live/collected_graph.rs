//! Turns a live walk into a graph in memory.

use super::descriptions::NodeDescriptions;
use super::found_node::FoundNode;
use super::nodes::{ReferenceTargets, WalkNodes};
use super::sink::GraphSink;
use crate::graph::{Graph, GraphTextId};

/// The nodes and edges of a walk.
pub(super) struct CollectedGraph {
    /// The data of each node.
    found: Vec<FoundNode>,
    /// Edges (source, target, name) in the order of the walk.
    edges: Vec<(u32, u32, Option<GraphTextId>)>,
    /// Pointers: source, address, name.
    pointers: Vec<(u32, usize, Option<GraphTextId>)>,
}

impl CollectedGraph {
    /// A graph that contains only the root.
    pub(super) fn new() -> Self {
        Self { found: vec![FoundNode::ROOT], edges: Vec::new(), pointers: Vec::new() }
    }

    /// Finishes the graph. `time` is the time of the walk in microseconds since 1970 UTC.
    pub(super) fn finish(
        self,
        mut descriptions: NodeDescriptions<'_>,
        targets: &ReferenceTargets,
        time: Option<u64>,
    ) -> Graph {
        let Self { found, mut edges, pointers } = self;
        let resolved = |(from, address, name)| Some((from, targets.node_at(address)?, name));
        edges.extend(pointers.into_iter().filter_map(resolved));
        edges.sort_by_key(|(from, ..)| *from);
        let mut builder = descriptions.take_builder();
        builder.set_creation_time(time);
        let mut edges = edges.into_iter().peekable();
        for (node, found) in (0..).zip(&found) {
            builder.node(descriptions.parts(found)).expect("the walk has counted the nodes");
            while let Some((_, to, name)) = edges.next_if(|(from, ..)| *from == node) {
                builder.edge(targets.id(to), name).expect("a program has fewer than 2^32 edges");
            }
        }
        builder.finish().expect("each node has its own id, and edges lead to nodes")
    }
}

impl GraphSink for CollectedGraph {
    fn node(&mut self, _: u32, found: FoundNode) {
        self.found.push(found);
    }

    fn edge(&mut self, from: u32, to: u32, name: Option<GraphTextId>, _: &WalkNodes) {
        self.edges.push((from, to, name));
    }

    fn pointer(&mut self, from: u32, to: usize, name: Option<GraphTextId>, _: &WalkNodes) {
        self.pointers.push((from, to, name));
    }

    fn settle(&mut self, _: &NodeDescriptions<'_>) {}

    fn open(&mut self) {}

    fn close(&mut self, _: &NodeDescriptions<'_>) {}

    fn close_all(&mut self, _: &NodeDescriptions<'_>) {}
}
