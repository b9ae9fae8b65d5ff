//! Writes a live walk to a file during the walk. A node is written when all its edges are known.

use std::io::{self, Write};

use super::descriptions::NodeDescriptions;
use super::found_node::{FoundNode, root_id};
use super::nodes::{ReferenceTargets, WalkNodes};
use super::sink::GraphSink;
use crate::graph::{GraphTextId, NodeId, NodeKind};
use crate::snapshot::{Packer, SnapshotWriteOptions};

/// A node that is not yet written.
struct PendingNode {
    node: u32,
    found: FoundNode,
    edges: Vec<(NodeId, Option<GraphTextId>)>,
    /// Pointers to addresses that the walk has not met yet.
    pointers: Vec<(usize, Option<GraphTextId>)>,
}

/// A snapshot file that a walk writes.
pub(super) struct SnapshotStream<'a> {
    packer: Packer<&'a mut dyn Write>,
    /// The node that the walk met last. It gets edges only if the walk opens it next.
    last: Option<PendingNode>,
    /// The open nodes, the innermost last; `None` for a node that the walk had already met.
    open: Vec<Option<PendingNode>>,
    /// Nodes with pointers to addresses that the walk may still meet.
    held: Vec<PendingNode>,
    /// The first error. After it, the stream writes nothing.
    error: Option<io::Error>,
    nodes: u64,
    edges: u64,
}

impl<'a> SnapshotStream<'a> {
    /// Starts the file of a walk at this time, in microseconds since 1970 UTC. The roots have these names.
    pub(super) fn new(
        file: &'a mut dyn Write,
        time: Option<u64>,
        options: &SnapshotWriteOptions,
        names: &[String],
        descriptions: &mut NodeDescriptions<'_>,
    ) -> Self {
        let mut stream = Self {
            packer: Packer::new(file, time, options),
            last: None,
            open: Vec::new(),
            held: Vec::new(),
            error: None,
            nodes: 0,
            edges: 0,
        };
        let edges = (0..).zip(names);
        let edges =
            edges.map(|(place, name)| (NodeId(root_id(place)), Some(descriptions.text(name)))).collect();
        let root = PendingNode { node: 0, found: FoundNode::ROOT, edges, pointers: Vec::new() };
        stream.write(&root, descriptions);
        stream
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    fn end(&mut self, waiting: PendingNode, descriptions: &NodeDescriptions<'_>) {
        if waiting.pointers.is_empty() {
            self.write(&waiting, descriptions);
        } else {
            self.held.push(waiting);
        }
    }

    /// The pending data of this node, if the node is the innermost open node and not yet written. If the result is
    /// `None`, the walk has met the node before and has already recorded its edges.
    fn waiting(&mut self, node: u32) -> Option<&mut PendingNode> {
        self.open.iter_mut().rev().flatten().next().filter(|waiting| waiting.node == node)
    }

    fn write(&mut self, waiting: &PendingNode, descriptions: &NodeDescriptions<'_>) {
        if self.error.is_some() {
            return;
        }
        let PendingNode { found, edges, .. } = waiting;
        let kind = NodeKind::new(&descriptions.parts(found));
        let node = (NodeId(found.id), found.size, &kind);
        let (texts, frames) = descriptions.names();
        self.error = self.packer.node(texts, frames, node, edges.iter().copied()).err();
        self.nodes += 1;
        self.edges += edges.len() as u64;
    }

    /// Writes the held nodes and ends the file. Returns the numbers of nodes and edges in the file.
    pub(super) fn finish(
        mut self,
        descriptions: &NodeDescriptions<'_>,
        targets: &ReferenceTargets,
    ) -> io::Result<(u64, u64)> {
        for mut waiting in core::mem::take(&mut self.held) {
            let target = |address| Some(targets.id(targets.node_at(address)?));
            let edges =
                waiting.pointers.iter().filter_map(|(address, name)| Some((target(*address)?, *name)));
            waiting.edges.extend(edges);
            self.write(&waiting, descriptions);
        }
        match self.error {
            Some(error) => Err(error),
            None => self.packer.finish().map(|_| (self.nodes, self.edges)),
        }
    }
}

impl GraphSink for SnapshotStream<'_> {
    fn node(&mut self, node: u32, found: FoundNode) {
        self.last = Some(PendingNode { node, found, edges: Vec::new(), pointers: Vec::new() });
    }

    fn edge(&mut self, from: u32, to: u32, name: Option<GraphTextId>, nodes: &WalkNodes) {
        if let Some(from) = self.waiting(from) {
            from.edges.push((nodes.id(to), name));
        }
    }

    fn pointer(&mut self, from: u32, to: usize, name: Option<GraphTextId>, nodes: &WalkNodes) {
        let Some(from) = self.waiting(from) else { return };
        match nodes.shared(to) {
            Some(known) => from.edges.push((nodes.id(known), name)),
            None => from.pointers.push((to, name)),
        }
    }

    fn settle(&mut self, descriptions: &NodeDescriptions<'_>) {
        if let Some(waiting) = self.last.take() {
            self.end(waiting, descriptions);
        }
    }

    fn open(&mut self) {
        let last = self.last.take();
        self.open.push(last);
    }

    fn close(&mut self, descriptions: &NodeDescriptions<'_>) {
        if let Some(Some(waiting)) = self.open.pop() {
            self.end(waiting, descriptions);
        }
    }

    fn close_all(&mut self, descriptions: &NodeDescriptions<'_>) {
        while !self.open.is_empty() {
            self.close(descriptions);
        }
    }
}
