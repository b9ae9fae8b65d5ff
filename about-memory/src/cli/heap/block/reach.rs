//! Finds what keeps a block alive and what the block keeps alive. The graph is built from the words of a scan dump.
//!
//! A dump does not contain stacks and static data, so the pointers in stacks and static data are unknown. Therefore the
//! root of the graph, "outside of the heap", points to each block without a pointer from another block. The root also
//! points to one block of each ring of blocks that has no pointer from outside of the ring.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use dmd_analyze::{Dump, ScannedBlock};
use heap_graph::{
    DominatorTree, Graph, GraphBuilder, HeapNode, NodeId, NodeIndex, NodeParts, shortest_paths,
};

use about_memory::escape;

/// At most this many retained blocks are listed.
const MOST_LISTED: usize = 20;

pub(super) struct BlockReach<'d> {
    /// The blocks, sorted by address. The id of a node is the index of its block plus one.
    blocks: Vec<ScannedBlock<'d>>,
    graph: Graph,
    target: NodeIndex,
}

impl<'d> BlockReach<'d> {
    pub(super) fn new(dump: &'d Dump, address: u64) -> anyhow::Result<Self> {
        let mut blocks: Vec<ScannedBlock<'d>> = dump.scanned_blocks()?.collect();
        blocks.sort_by_key(|block| block.address());
        let Ok(place) = blocks.binary_search_by_key(&address, |block| block.address()) else {
            bail!("no block starts at 0x{address:x}");
        };
        let links = BlockLinks::find(&blocks);
        let graph = links.graph(&blocks).context("cannot build a graph of the blocks")?;
        let target = graph.find(id(place)).context("the block is not in its graph")?.index();
        Ok(Self { blocks, graph, target })
    }

    pub(super) fn text(&self, retained: bool, chain: bool) -> String {
        let mut text = String::new();
        if retained {
            self.retained(&mut text);
        }
        if retained && chain {
            text.push('\n');
        }
        if chain {
            self.chain(&mut text);
        }
        text
    }

    fn retained(&self, text: &mut String) {
        let tree = DominatorTree::new(&self.graph);
        let all = tree.retained_by(self.target);
        let bytes = tree.retained_size(self.target).unwrap_or_default();
        let plural = if all.len() == 1 { "" } else { "s" };
        line(text, format_args!("Retains {bytes} bytes in {} block{plural}, itself included {{", all.len()));
        let mut below: Vec<HeapNode<'_>> =
            all.into_iter().filter(|node| node.index() != self.target).collect();
        below.sort_by_key(|node| (std::cmp::Reverse(node.shallow_size()), node.id().0));
        self.block(text, self.graph.node(self.target));
        for node in below.iter().take(MOST_LISTED) {
            self.block(text, *node);
        }
        if below.len() > MOST_LISTED {
            line(text, format_args!("  ({} more)", below.len() - MOST_LISTED));
        }
        text.push_str("}\n\nEach of these blocks alone keeps it alive, the nearest first {\n");
        for node in tree.dominators_of(self.target).filter(|node| node.index() != self.target) {
            self.block(text, node);
        }
        text.push_str("}\n");
    }

    fn chain(&self, text: &mut String) {
        text.push_str("A shortest chain to the block {\n");
        let found = shortest_paths(&self.graph, NodeIndex::ROOT, &[self.target], 1);
        for step in found.paths.iter().flat_map(|(_, paths)| paths).flatten() {
            if let Some(node) = self.graph.find(step.predecessor) {
                self.block(text, node);
            }
            if let Some(offset) = &step.edge {
                line(text, format_args!("    points at byte offset {offset} to"));
            }
        }
        self.block(text, self.graph.node(self.target));
        text.push_str("}\n");
    }

    fn block(&self, text: &mut String, node: HeapNode<'_>) {
        let place = usize::try_from(node.id().0).ok().and_then(|id| id.checked_sub(1));
        let Some(block) = place.and_then(|place| self.blocks.get(place)) else {
            return line(text, format_args!("  outside of the heap"));
        };
        let stack = block.allocated_in().unwrap_or("(no stack trace)");
        let (address, usable) = (block.address(), block.usable());
        line(text, format_args!("  0x{address:x}: {usable} bytes, {}", escape(stack)));
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a string does not fail");
}

fn id(place: usize) -> NodeId {
    NodeId(place as u64 + 1)
}

/// The pointers between blocks.
struct BlockLinks {
    /// For each block: the blocks that it points to, each once, with the byte offset of the first pointer.
    to: Vec<Vec<(usize, usize)>>,
    /// For each block: one of the blocks that point to it. `None` if no block points to it.
    from: Vec<Option<usize>>,
}

impl BlockLinks {
    fn find(blocks: &[ScannedBlock<'_>]) -> Self {
        let mut links = Self { to: Vec::with_capacity(blocks.len()), from: vec![None; blocks.len()] };
        for (place, block) in blocks.iter().enumerate() {
            let mut to: Vec<(usize, usize)> = Vec::new();
            for (index, word) in block.words().iter().enumerate() {
                let Some(target) = enclosing(blocks, *word).filter(|target| *target != place) else {
                    continue;
                };
                links.from[target].get_or_insert(place);
                to.push((target, 8 * index));
            }
            to.sort_unstable();
            to.dedup_by_key(|(target, _)| *target);
            links.to.push(to);
        }
        links
    }

    /// The blocks that the root points to.
    fn roots(&self) -> Vec<usize> {
        let mut reached = vec![false; self.to.len()];
        let mut roots: Vec<usize> = (0..self.to.len()).filter(|block| self.from[*block].is_none()).collect();
        for root in &roots {
            self.reach(*root, &mut reached);
        }
        let mut walked = vec![usize::MAX; self.to.len()];
        for start in 0..self.to.len() {
            if reached[start] {
                continue;
            }
            // Follows the pointers backwards until the walk reaches a block for the second time. That block is in a
            // ring.
            let mut at = start;
            while walked[at] != start {
                walked[at] = start;
                match self.from[at] {
                    Some(from) if !reached[from] => at = from,
                    _ => break,
                }
            }
            roots.push(at);
            self.reach(at, &mut reached);
        }
        roots
    }

    fn reach(&self, root: usize, reached: &mut [bool]) {
        let mut open = vec![root];
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut reached[block], true) {
                open.extend(self.to[block].iter().map(|(target, _)| *target));
            }
        }
    }

    fn graph(&self, blocks: &[ScannedBlock<'_>]) -> anyhow::Result<Graph> {
        let mut graph = GraphBuilder::new();
        let (outside, kind) = (graph.text("outside of the heap")?, graph.text("block")?);
        graph.node(NodeParts::new(NodeId(0), 0, outside))?;
        for root in self.roots() {
            graph.edge(id(root), None)?;
        }
        for (place, (block, to)) in blocks.iter().zip(&self.to).enumerate() {
            graph.node(NodeParts::new(id(place), block.usable(), kind))?;
            for (target, offset) in to {
                let offset = graph.text(&offset.to_string())?;
                graph.edge(id(*target), Some(offset))?;
            }
        }
        Ok(graph.finish()?)
    }
}

/// The index of the block that contains the address.
fn enclosing(blocks: &[ScannedBlock<'_>], address: u64) -> Option<usize> {
    let place = blocks.partition_point(|block| block.address() <= address).checked_sub(1)?;
    let block = blocks[place];
    (address - block.address() < block.requested().max(1)).then_some(place)
}
