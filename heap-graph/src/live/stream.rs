//! A live walk that is written while it goes on: a block goes to the file once all its edges are known.

use std::io::{self, Write};

use super::reading::{Found, Kind};
use crate::graph::{self, GraphBuilder, NodeId};
use crate::snapshot::{Packer, WriteOptions};
use crate::text::TextId;

/// A node that has no part in the file yet.
struct Waiting {
    node: u32,
    found: Found,
    edges: Vec<(NodeId, Option<TextId>)>,
    /// References that lead to what was not met so far.
    pointers: Vec<(Option<TextId>, usize)>,
}

pub(super) struct Stream<'a> {
    packer: Packer<&'a mut dyn Write>,
    /// The block told last. It has no edges if it is not opened next.
    told: Option<Waiting>,
    /// What is open, innermost last; `None` for a block that was told before.
    open: Vec<Option<Waiting>>,
    /// Nodes with references that may yet be met.
    held: Vec<Waiting>,
    /// What went wrong first: nothing is written after that.
    error: Option<io::Error>,
    nodes: u64,
    edges: u64,
}

/// What numbers in nodes stand for.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) builder: &'a GraphBuilder,
    pub(super) kinds: &'a [Kind],
}

impl<'a> Stream<'a> {
    pub(super) fn new(file: &'a mut dyn Write, now: Option<u64>, options: &WriteOptions) -> Self {
        Self {
            packer: Packer::new(file, now, options),
            told: None,
            open: Vec::new(),
            held: Vec::new(),
            error: None,
            nodes: 0,
            edges: 0,
        }
    }

    /// The root, with edges to all that hangs from it.
    pub(super) fn root(&mut self, found: Found, edges: Vec<(NodeId, Option<TextId>)>, context: Context<'_>) {
        self.write(&Waiting { node: 0, found, edges, pointers: Vec::new() }, context);
    }

    /// A node is found; its edges may follow if it is opened next.
    pub(super) fn tell(&mut self, node: u32, found: Found) {
        self.told = Some(Waiting { node, found, edges: Vec::new(), pointers: Vec::new() });
    }

    /// Something else comes: what was told last has no edges.
    pub(super) fn settle(&mut self, context: Context<'_>) {
        if let Some(waiting) = self.told.take() {
            self.end(waiting, context);
        }
    }

    pub(super) fn open(&mut self) {
        let told = self.told.take();
        self.open.push(told);
    }

    pub(super) fn close(&mut self, context: Context<'_>) {
        if let Some(Some(waiting)) = self.open.pop() {
            self.end(waiting, context);
        }
    }

    /// Ends what is open, with the edges found so far.
    pub(super) fn close_all(&mut self, context: Context<'_>) {
        while !self.open.is_empty() {
            self.close(context);
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    fn end(&mut self, waiting: Waiting, context: Context<'_>) {
        if waiting.pointers.is_empty() {
            self.write(&waiting, context);
        } else {
            self.held.push(waiting);
        }
    }

    /// The owner, unless it was written when it was met before: then its edges were, too.
    fn owner(&mut self, owner: u32) -> Option<&mut Waiting> {
        self.open.iter_mut().rev().flatten().next().filter(|waiting| waiting.node == owner)
    }

    pub(super) fn edge(&mut self, owner: u32, to: NodeId, name: Option<TextId>) {
        if let Some(owner) = self.owner(owner) {
            owner.edges.push((to, name));
        }
    }

    pub(super) fn pointer(&mut self, owner: u32, name: Option<TextId>, address: usize) {
        if let Some(owner) = self.owner(owner) {
            owner.pointers.push((name, address));
        }
    }

    fn write(&mut self, waiting: &Waiting, context: Context<'_>) {
        if self.error.is_some() {
            return;
        }
        let Waiting { found, edges, .. } = waiting;
        let kind = graph::Kind::of(&found.parts(context.kinds));
        let node = (NodeId(found.id), found.size, &kind);
        let GraphBuilder { texts, frames, .. } = context.builder;
        self.error = self.packer.node(texts, frames, node, edges.iter().copied()).err();
        self.nodes += 1;
        self.edges += edges.len() as u64;
    }

    /// Writes what was held, and ends the file. Gives the number of nodes and edges.
    pub(super) fn finish(
        mut self,
        context: Context<'_>,
        target: impl Fn(usize) -> Option<NodeId>,
    ) -> io::Result<(u64, u64)> {
        for mut waiting in core::mem::take(&mut self.held) {
            let edges =
                waiting.pointers.iter().filter_map(|(name, address)| Some((target(*address)?, *name)));
            waiting.edges.extend(edges);
            self.write(&waiting, context);
        }
        match self.error {
            Some(error) => Err(error),
            None => self.packer.finish().map(|_| (self.nodes, self.edges)),
        }
    }
}
