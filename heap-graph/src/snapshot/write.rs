//! Writing snapshots: node by node, with nothing kept but texts and frames.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::encode::Encoder;
use crate::error::GraphError;
use crate::frame::{FrameId, FrameParts, Frames};
use crate::graph::{Graph, Kind, NodeId, NodeParts};
use crate::text::{TextId, Texts};

/// How to write a snapshot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteOptions {
    /// From 0, none, to 9, slow; 1 by default: a heap compresses well even so.
    pub compression: u32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { compression: 1 }
    }
}

impl WriteOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`compression`](Self::compression).
    pub fn compression(mut self, level: u32) -> Self {
        self.compression = level;
        self
    }
}

/// Messages are packed so many bytes at a time.
const STEP: usize = 64 * 1024;

/// Packs messages into a file.
#[derive(Debug)]
pub(crate) struct Packer<W: Write> {
    file: GzEncoder<W>,
    encoder: Encoder,
    waiting: Vec<u8>,
}

impl<W: Write> Packer<W> {
    pub(crate) fn new(file: W, creation_time: Option<u64>, options: &WriteOptions) -> Self {
        let mut encoder = Encoder::default();
        let waiting = encoder.metadata(creation_time);
        let file = GzEncoder::new(file, Compression::new(options.compression.min(9)));
        Self { file, encoder, waiting }
    }

    pub(crate) fn node(
        &mut self,
        texts: &Texts,
        frames: &Frames,
        node: (NodeId, u64, &Kind),
        edges: impl Iterator<Item = (NodeId, Option<TextId>)>,
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

/// Writes a graph as a snapshot, which Firefox reads, too.
///
/// Reading it gives the same graph but for: what follows a NUL in a text, letters in the name of a
/// class that Latin-1 does not have (they become `?`), halves of characters in the name of a file, and stacks
/// whose youngest 90 frames or more were in no stack written before: these 90 are left of them. Stacks that keep
/// more than 10,000 frames are refused by readers here.
///
/// # Errors
///
/// Of the file. Firefox refuses ids that no double can hold exactly; of addresses there are none.
pub fn write<W: Write>(graph: &Graph, file: W, options: &WriteOptions) -> io::Result<W> {
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

/// Writes a snapshot of a heap that is nowhere else as a graph: each node goes to the file as it is
/// told. Only texts and frames are kept.
///
/// ```
/// use heap_graph::snapshot::{self, SnapshotWriter, WriteOptions};
/// use heap_graph::{NodeId, NodeParts};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut writer = SnapshotWriter::new(Vec::new(), Some(1_700_000_000_000_000), &WriteOptions::new());
/// let (roots, cache) = (writer.text("roots")?, writer.text("Cache")?);
/// writer.node(NodeParts::new(NodeId(1), 0, roots), &[(NodeId(16), Some(cache))])?;
/// writer.node(NodeParts::new(NodeId(16), 96, cache), &[])?;
/// let file = writer.finish()?;
/// let graph = snapshot::read_from(&file[..], &snapshot::ReadOptions::new())?;
/// assert_eq!(graph.node_count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SnapshotWriter<W: Write> {
    packer: Packer<W>,
    texts: Texts,
    frames: Frames,
}

impl<W: Write> SnapshotWriter<W> {
    /// A snapshot taken at a time in microseconds since 1970 UTC. The first node told is the root.
    pub fn new(file: W, creation_time: Option<u64>, options: &WriteOptions) -> Self {
        let packer = Packer::new(file, creation_time, options);
        Self { packer, texts: Texts::default(), frames: Frames::default() }
    }

    /// Makes a text known.
    ///
    /// # Errors
    ///
    /// [`GraphError::TooMany`] after 2^32 - 1 texts.
    pub fn text(&mut self, text: &str) -> Result<TextId, GraphError> {
        self.texts.intern(text.as_bytes()).ok_or(GraphError::TooMany("texts"))
    }

    /// Makes a frame known.
    ///
    /// # Errors
    ///
    /// [`GraphError::TooMany`] after 2^32 - 1 frames.
    pub fn frame(&mut self, frame: FrameParts) -> Result<FrameId, GraphError> {
        self.frames.intern(frame).ok_or(GraphError::TooMany("frames"))
    }

    /// Writes a node and its edges, whose targets may come later. Each id must be told once, and
    /// each target must be told at some time: else the file cannot be read.
    ///
    /// # Errors
    ///
    /// Of the file.
    pub fn node(&mut self, node: NodeParts, edges: &[(NodeId, Option<TextId>)]) -> io::Result<()> {
        let kind = Kind::of(&node);
        let node = (node.id, node.shallow_size, &kind);
        self.packer.node(&self.texts, &self.frames, node, edges.iter().copied())
    }

    /// Ends the file, and gives it back.
    ///
    /// # Errors
    ///
    /// Of the file.
    pub fn finish(self) -> io::Result<W> {
        self.packer.finish()
    }
}
