//! A live walk in memory, which becomes a graph.

use super::descriptions::Descriptions;
use super::found::Found;
use super::nodes::{Nodes, Targets};
use super::sink::Sink;
use crate::graph::{Graph, TextId};

/// The nodes and edges of a walk.
pub(super) struct Collected {
    /// By node.
    found: Vec<Found>,
    /// Edges (from, to, name) in the order of the walk.
    edges: Vec<(u32, u32, Option<TextId>)>,
    /// Pointers: from, the address, name.
    pointers: Vec<(u32, usize, Option<TextId>)>,
}

impl Collected {
    /// The root only.
    pub(super) fn new() -> Self {
        Self { found: vec![Found::ROOT], edges: Vec::new(), pointers: Vec::new() }
    }

    /// The graph, with the time of the walk in microseconds since 1970 UTC.
    pub(super) fn finish(
        self,
        mut descriptions: Descriptions<'_>,
        targets: &Targets,
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
                builder.edge(targets.id(to), name).expect("a program has less than 2^32 edges");
            }
        }
        builder.finish().expect("each node has its own id, and edges lead to nodes")
    }
}

impl Sink for Collected {
    fn node(&mut self, _: u32, found: Found) {
        self.found.push(found);
    }

    fn edge(&mut self, from: u32, to: u32, name: Option<TextId>, _: &Nodes) {
        self.edges.push((from, to, name));
    }

    fn pointer(&mut self, from: u32, to: usize, name: Option<TextId>, _: &Nodes) {
        self.pointers.push((from, to, name));
    }

    fn settle(&mut self, _: &Descriptions<'_>) {}

    fn open(&mut self) {}

    fn close(&mut self, _: &Descriptions<'_>) {}

    fn close_all(&mut self, _: &Descriptions<'_>) {}
}
