//! Writes snapshots node by node. The writer keeps only texts and frames in memory.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::encode::Encoder;
use super::options::SnapshotWriteOptions;
use crate::graph::{
    FrameParts, FrameTable, Graph, GraphError, GraphFrameId, GraphTextId, NodeId, NodeKind, NodeParts,
    TextTable,
};

/// The number of bytes of messages to compress at once.
const STEP: usize = 64 * 1024;

/// Compresses messages into a file.
#[derive(Debug)]
pub(crate) struct Packer<W: Write> {
    file: GzEncoder<W>,
    encoder: Encoder,
    waiting: Vec<u8>,
}

impl<W: Write> Packer<W> {
    pub(crate) fn new(file: W, creation_time: Option<u64>, options: &SnapshotWriteOptions) -> Self {
        let mut encoder = Encoder::default();
        let waiting = encoder.metadata(creation_time);
        let file = GzEncoder::new(file, Compression::new(options.compression.min(9)));
        Self { file, encoder, waiting }
    }

    pub(crate) fn node(
        &mut self,
        texts: &TextTable,
        frames: &FrameTable,
        node: (NodeId, u64, &NodeKind),
        edges: impl Iterator<Item = (NodeId, Option<GraphTextId>)>,
    ) -> io::Result<()> {
        self.encoder.node(texts, frames, node, edges, &mut self.waiting);
        if self.waiting.len() >= STEP {
            self.file.write_all(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.file.write_all(&self.waiting)?;
        let mut file = self.file.finish()?;
        file.flush()?;
        Ok(file)
    }
}

/// Writes a graph as a snapshot for Firefox.
///
/// Reading the file returns the same graph, with these exceptions:
///
/// - An empty stack ([`GraphFrameId::EMPTY_STACK`]) becomes a missing stack.
/// - A text ends at its first NUL.
/// - Characters of a class name that Latin-1 does not contain become `?`.
/// - Lone surrogates in a file name become U+FFFD.
/// - If the innermost 90 frames of a stack are all new in the file, only these 90 are kept.
///
/// [`read`](super::read()) rejects stacks that still have more than 10,000 frames. Firefox and `read` reject ids
/// without an exact representation as a double. Real addresses are always exact.
///
/// # Errors
///
/// Returns an error if `file` cannot be written.
pub fn write<W: Write>(graph: &Graph, file: W, options: &SnapshotWriteOptions) -> io::Result<W> {
    let mut packer = Packer::new(file, graph.creation_time(), options);
    for index in 0..graph.node_count() as u32 {
        let kind = &graph.kinds()[graph.kinds_of()[index as usize] as usize];
        let edges = graph
            .edge_range(index)
            .map(|edge| (NodeId(graph.ids()[graph.referent(edge) as usize]), graph.edge_name(edge)));
        let node = (NodeId(graph.ids()[index as usize]), graph.sizes()[index as usize], kind);
        packer.node(graph.texts(), graph.frames(), node, edges)?;
    }
    packer.finish()
}

/// Writes a snapshot of a heap node by node, without a graph in memory. The writer keeps only texts and frames in
/// memory.
///
/// ```
/// use heap_graph::snapshot::{self, SnapshotWriter, SnapshotWriteOptions};
/// use heap_graph::{NodeId, NodeParts};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut writer = SnapshotWriter::new(Vec::new(), Some(1_700_000_000_000_000), &SnapshotWriteOptions::new());
/// let (roots, cache) = (writer.text("roots")?, writer.text("Cache")?);
/// writer.node(NodeParts::new(NodeId(1), 0, roots), &[(NodeId(16), Some(cache))])?;
/// writer.node(NodeParts::new(NodeId(16), 96, cache), &[])?;
/// let file = writer.finish()?;
/// let graph = snapshot::read_from(&file[..], &snapshot::SnapshotReadOptions::new())?;
/// assert_eq!(graph.node_count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SnapshotWriter<W: Write> {
    packer: Packer<W>,
    texts: TextTable,
    frames: FrameTable,
}

impl<W: Write> SnapshotWriter<W> {
    /// Starts a snapshot of the time `creation_time`, in microseconds since 1970 UTC. The first node is the root.
    pub fn new(file: W, creation_time: Option<u64>, options: &SnapshotWriteOptions) -> Self {
        let packer = Packer::new(file, creation_time, options);
        Self { packer, texts: TextTable::default(), frames: FrameTable::default() }
    }

    /// Adds a text, or finds an equal text that was added before.
    ///
    /// # Errors
    ///
    /// Returns [`GraphError::TooMany`] after 2^32 - 1 texts.
    pub fn text(&mut self, text: &str) -> Result<GraphTextId, GraphError> {
        self.texts.intern(text.as_bytes()).ok_or(GraphError::TooMany("texts"))
    }

    /// Adds a frame, or finds an equal frame that was added before.
    ///
    /// # Errors
    ///
    /// Returns [`GraphError::TooMany`] after 2^32 - 2 frames.
    pub fn frame(&mut self, frame: FrameParts) -> Result<GraphFrameId, GraphError> {
        self.frames.intern(frame).ok_or(GraphError::TooMany("frames"))
    }

    /// Writes a node and its edges. The targets of the edges may be written later. The caller must write each target
    /// exactly once; otherwise readers reject the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn node(&mut self, node: NodeParts, edges: &[(NodeId, Option<GraphTextId>)]) -> io::Result<()> {
        let kind = NodeKind::new(&node);
        let node = (node.id, node.shallow_size, &kind);
        self.packer.node(&self.texts, &self.frames, node, edges.iter().copied())
    }

    /// Ends the file and returns it.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.packer.finish()
    }
}
