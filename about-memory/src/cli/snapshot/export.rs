//! Exports for other tools.

use std::io;

use clap::{Args, ValueEnum};
use heap_graph::export::{Neighbourhood, NeighbourhoodOptions};
use heap_graph::snapshot::{self, SnapshotWriteOptions};
use heap_graph::{Graph, NodeIndex};

use super::super::Failure;
use super::input::SnapshotInput;

#[derive(Clone, Copy, ValueEnum)]
enum SnapshotFormat {
    /// An .fxsnapshot, as this program writes it.
    Fxsnapshot,
    /// V8's .heapsnapshot, for Chrome's developer tools and memlab.
    V8,
    /// The neighbourhood of a node, for Graphviz.
    Dot,
    /// The neighbourhood of a node, for graph editors.
    Graphml,
}

#[derive(Args)]
pub(super) struct SnapshotExportCommand {
    #[command(flatten)]
    input: SnapshotInput,
    /// The format to write to standard output.
    #[arg(long, value_enum)]
    to: SnapshotFormat,
    /// The node to draw, by id. [default: the root]
    #[arg(long, value_name = "ID")]
    node: Option<u64>,
    /// Show at most this many levels. The level of a node is its distance from the drawn node, in edges.
    #[arg(long, value_name = "LEVELS", default_value_t = 2)]
    depth: usize,
    /// Draw at most this many nodes.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    max_nodes: usize,
}

impl SnapshotExportCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        let graph = self.input.read()?;
        // Large files are written directly, without a string of the whole file.
        let out = io::stdout().lock();
        match self.to {
            SnapshotFormat::V8 => heap_graph::export::write_v8(&graph, out).map_err(Failure::Output)?,
            SnapshotFormat::Fxsnapshot => {
                let written = snapshot::write(&graph, out, &SnapshotWriteOptions::new());
                drop(written.map_err(Failure::Output)?);
            }
            SnapshotFormat::Dot => return Ok(self.near(&graph)?.to_dot()),
            SnapshotFormat::Graphml => return Ok(self.near(&graph)?.to_graphml()),
        }
        Ok(String::new())
    }

    fn near<'a>(&self, graph: &'a Graph) -> Result<Neighbourhood<'a>, Failure> {
        let node = match self.node {
            Some(id) => self.input.find(graph, id)?.index(),
            None => NodeIndex::ROOT,
        };
        let options = NeighbourhoodOptions::new().depth(self.depth).max_nodes(self.max_nodes);
        Ok(Neighbourhood::new(graph, node, &options))
    }
}
