//! Turns the typed heap into a graph, for censuses, dominators, paths and snapshots.

use dmd_analyze::Dump;
use hashbrown::HashMap;
use heap_graph::graph::{FrameParts, GraphFrameId, GraphTextId};
use heap_graph::{Graph, GraphBuilder, NodeId, NodeParts};

use crate::error::TypedError;
use crate::infer::{BlockEdge, TypedHeap};
use crate::path::FieldPathId;
use crate::type_name::NameBasis;

/// The id of the root. The ids of blocks are their addresses, which are larger.
const ROOT: NodeId = NodeId(1);

/// The type of the graph's root.
pub const ROOTS: &str = "roots";

/// The name of edges to blocks without a known holder: blocks, statics and threads do not hold them.
pub const FROM_OUTSIDE: &str = "held from outside of the heap";

/// The name of the edge to one block of a cycle, if no block outside of the cycle holds a block of the cycle.
pub(crate) const IN_A_CYCLE: &str = "in a cycle that nothing else holds";

/// The name of an edge from a word of a block without a layout.
pub(crate) const WORD: &str = "a word";

impl TypedHeap<'_> {
    /// The graph of the heap. It has a node for each block. A node has the block's address as its id, its usable bytes,
    /// its type, and the stack that allocated it. `dump` must be the dump of the heap. Edges have the paths of fields
    /// as names. The root has an edge to each block that a static holds, to each block that no block holds, and to one
    /// block of each cycle that is held neither by a static nor by a block outside of the cycle.
    ///
    /// # Errors
    ///
    /// Returns [`TypedError::Graph`] if the graph exceeds its limits.
    pub fn graph(&self, dump: &Dump) -> Result<Graph, TypedError> {
        let mut builder = GraphBuilder::new();
        builder.set_creation_time(dump.time().map(|seconds| seconds.saturating_mul(1_000_000)));
        let root = builder.text(ROOTS)?;
        builder.node(NodeParts::new(ROOT, 0, root))?;
        for (name, block) in self.statics() {
            let name = builder.text(&name)?;
            builder.edge(self.id(block), Some(name))?;
        }
        let is_held = self.held_by_blocks();
        for block in &self.not_held {
            let name = builder.text(self.outer_holder(*block, &is_held))?;
            builder.edge(self.id(*block), Some(name))?;
        }
        let stacks = stacks(dump, &mut builder)?;
        let mut paths: HashMap<Option<FieldPathId>, GraphTextId> = HashMap::new();
        let mut names: HashMap<NameBasis, GraphTextId> = HashMap::new();
        for (block, of) in self.blocks.iter().enumerate() {
            let type_name = match names.get(&self.basis(block)) {
                Some(known) => *known,
                None => {
                    let text = builder.text(&self.type_name(block))?;
                    names.insert(self.basis(block), text);
                    text
                }
            };
            let mut node = NodeParts::new(NodeId(of.address), of.usable, type_name);
            node.class_name = Some(type_name);
            node.allocation_stack = of.stack.and_then(|stack| stacks.get(stack).copied().flatten());
            builder.node(node)?;
            for BlockEdge { to, path } in &self.edges[self.firsts[block]..self.firsts[block + 1]] {
                let name = match paths.get(path) {
                    Some(known) => *known,
                    None => {
                        let text = path.map(|path| self.walk.paths.text(path, self.walk.info()));
                        let text = builder.text(text.as_deref().unwrap_or(WORD))?;
                        paths.insert(*path, text);
                        text
                    }
                };
                builder.edge(self.id(*to as usize), Some(name))?;
            }
        }
        Ok(builder.finish()?)
    }

    fn id(&self, block: usize) -> NodeId {
        NodeId(self.blocks[block].address)
    }

    /// The name of the edge to a block of `not_held`.
    pub(crate) fn outer_holder(&self, block: usize, is_held: &[bool]) -> &str {
        let unknown = if is_held[block] { IN_A_CYCLE } else { FROM_OUTSIDE };
        self.from_threads.text(block).unwrap_or(unknown)
    }

    /// For each block, whether another block holds it.
    pub(crate) fn held_by_blocks(&self) -> Vec<bool> {
        let mut is_held = vec![false; self.blocks.len()];
        self.edges.iter().for_each(|edge| is_held[edge.to as usize] = true);
        is_held
    }

    /// Blocks from which, together with the statics, all blocks are reachable. These are the blocks that no other
    /// block holds, and one block of each cycle that no outside block holds. In a cycle, a block that a thread holds
    /// is preferred.
    pub(crate) fn find_not_held(&self) -> Vec<usize> {
        let is_held = self.held_by_blocks();
        let mut reached = vec![false; self.blocks.len()];
        let mut waiting: Vec<usize> = self.from_statics.iter().map(|(_, edge)| edge.to as usize).collect();
        self.reach(&mut waiting, &mut reached);
        let mut roots = Vec::new();
        let first = (0..self.blocks.len()).filter(|block| !is_held[*block]);
        let by_threads = (0..self.blocks.len()).filter(|block| self.from_threads.hold(*block));
        for block in first.chain(by_threads) {
            self.reach_from(block, &mut roots, &mut waiting, &mut reached);
        }
        // A walk leaves a block of a cycle after all blocks that only the cycle holds. So the unreached block that
        // the walk leaves last is in a cycle, and no block outside of the cycle holds it.
        for block in self.order_of_leaving(&reached).into_iter().rev() {
            self.reach_from(block, &mut roots, &mut waiting, &mut reached);
        }
        roots
    }

    fn reach_from(
        &self,
        block: usize,
        roots: &mut Vec<usize>,
        waiting: &mut Vec<usize>,
        reached: &mut [bool],
    ) {
        if !reached[block] {
            roots.push(block);
            waiting.push(block);
            self.reach(waiting, reached);
        }
    }

    /// The blocks that are not reached, in the order in which a depth-first walk leaves them.
    fn order_of_leaving(&self, reached: &[bool]) -> Vec<usize> {
        let mut entered = reached.to_vec();
        let mut left = Vec::new();
        // The blocks on the current path, each with its next edge.
        let mut way: Vec<(usize, usize)> = Vec::new();
        for start in 0..self.blocks.len() {
            if core::mem::replace(&mut entered[start], true) {
                continue;
            }
            way.push((start, self.firsts[start]));
            while let Some((block, edge)) = way.last_mut() {
                if *edge == self.firsts[*block + 1] {
                    left.push(*block);
                    way.pop();
                    continue;
                }
                let to = self.edges[*edge].to as usize;
                *edge += 1;
                if !core::mem::replace(&mut entered[to], true) {
                    way.push((to, self.firsts[to]));
                }
            }
        }
        left
    }

    fn reach(&self, waiting: &mut Vec<usize>, reached: &mut [bool]) {
        while let Some(block) = waiting.pop() {
            if !core::mem::replace(&mut reached[block], true) {
                let edges = &self.edges[self.firsts[block]..self.firsts[block + 1]];
                waiting.extend(edges.iter().map(|edge| edge.to as usize).filter(|to| !reached[*to]));
            }
        }
    }

    /// The number and the usable bytes of blocks that statics and thread-locals hold, directly or through other
    /// blocks.
    pub fn held_by_statics(&self) -> (usize, u64) {
        self.held_by(self.from_statics.iter().map(|(_, edge)| edge.to as usize).collect())
    }

    /// The number and the usable bytes of blocks that statics, thread-locals and threads hold, directly or through
    /// other blocks.
    pub fn held_by_roots(&self) -> (usize, u64) {
        let statics = self.from_statics.iter().map(|(_, edge)| edge.to as usize);
        let by_threads = self.not_held.iter().copied().filter(|block| self.from_threads.hold(*block));
        self.held_by(statics.chain(by_threads).collect())
    }

    fn held_by(&self, mut waiting: Vec<usize>) -> (usize, u64) {
        let mut reached = vec![false; self.blocks.len()];
        self.reach(&mut waiting, &mut reached);
        let held = self.blocks.iter().zip(&reached).filter(|(_, reached)| **reached);
        held.fold((0, 0), |(blocks, bytes), (block, _)| (blocks + 1, bytes + block.usable))
    }
}

/// The innermost frame of each stack of the dump.
fn stacks(dump: &Dump, builder: &mut GraphBuilder) -> Result<Vec<Option<GraphFrameId>>, TypedError> {
    let mut all = Vec::new();
    for stack in dump.stacks() {
        let frames: Vec<_> = stack.collect();
        let mut youngest = None;
        for frame in frames.iter().rev() {
            let parts = FrameParts {
                parent: youngest,
                source: builder.text(frame.file.or(frame.module).unwrap_or_default())?,
                line: frame.line.unwrap_or(0),
                column: frame.column.unwrap_or(0),
                function: frame.function.map(|function| builder.text(function)).transpose()?,
                is_system: false,
                is_self_hosted: false,
            };
            youngest = Some(builder.frame(parts)?);
        }
        all.push(youngest);
    }
    Ok(all)
}
