//! Snapshot files, breakdowns and nodes named on the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use heap_graph::graph::CoarseType;
use heap_graph::snapshot::{self, SnapshotReadOptions};
use heap_graph::{Breakdown, Graph, HeapNode, NodeId, NodeIndex};

use super::super::Failure;

#[derive(Args)]
pub(super) struct SnapshotInput {
    /// The snapshot; `-` for standard input.
    pub(super) file: PathBuf,
    /// Read messages of at most this many bytes each. A snapshot with a longer message is rejected.
    #[arg(long, value_name = "BYTES", default_value_t = SnapshotReadOptions::MAX_MESSAGE_BYTES)]
    max_message_bytes: u64,
    /// Read at most this many bytes per file, uncompressed.
    #[arg(long, value_name = "BYTES", default_value_t = SnapshotReadOptions::MAX_BYTES)]
    max_bytes: u64,
}

impl SnapshotInput {
    pub(super) fn read(&self) -> Result<Graph, Failure> {
        self.read_file(&self.file)
    }

    pub(super) fn read_file(&self, file: &Path) -> Result<Graph, Failure> {
        let options =
            SnapshotReadOptions::new().max_message_bytes(self.max_message_bytes).max_bytes(self.max_bytes);
        let result = if file.as_os_str() == "-" {
            snapshot::read_from(std::io::stdin().lock(), &options)
        } else {
            snapshot::read_with(file, &options)
        };
        result.map_err(|error| Failure::File(file.display().to_string(), error.into()))
    }

    pub(super) fn failure(&self, error: impl Into<anyhow::Error>) -> Failure {
        Failure::File(self.file.display().to_string(), error.into())
    }

    /// Returns the node with this id.
    pub(super) fn find<'a>(&self, graph: &'a Graph, id: u64) -> Result<HeapNode<'a>, Failure> {
        graph.find(NodeId(id)).ok_or_else(|| self.failure(anyhow::anyhow!("no node has the id {id}")))
    }
}

/// Parses a breakdown, given as a name or as JSON. Returns the breakdown and its JSON.
pub(super) fn breakdown(argument: &str) -> Result<(Breakdown, String), Failure> {
    let preset = Breakdown::PRESETS.iter().find(|(name, _)| *name == argument);
    let json = match preset {
        Some((_, json)) => json,
        // A number or `true` is JSON; `Breakdown::parse` reports why it is not a breakdown.
        None if argument.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && serde_json::from_str::<serde_json::Value>(argument).is_err() =>
        {
            let names: Vec<_> = Breakdown::PRESETS.iter().map(|(name, _)| *name).collect();
            return Err(Failure::Usage(format!(
                "no breakdown is called \"{argument}\"; use JSON or one of {}",
                names.join(", ")
            )));
        }
        None => argument,
    };
    let breakdown = Breakdown::parse(json).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok((breakdown, json.to_owned()))
}

#[derive(Args)]
pub(super) struct InfoCommand {
    #[command(flatten)]
    input: SnapshotInput,
    /// Write JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl InfoCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        let graph = self.input.read()?;
        let bytes: u128 = graph.nodes().map(|node| u128::from(node.shallow_size())).sum();
        let (flat, names) = graph.memory();
        let mut rows: Vec<(String, u128)> = [
            ("nodes", graph.node_count()),
            ("edges", graph.edge_count()),
            ("texts", graph.text_count()),
            ("frames", graph.frame_count()),
        ]
        .map(|(name, count)| (name.to_owned(), count as u128))
        .into();
        rows.push(("bytes".to_owned(), bytes));
        for coarse_type in CoarseType::ALL {
            let count = graph.nodes().filter(|node| node.coarse_type() == coarse_type).count();
            rows.push((coarse_type.key().to_owned(), count as u128));
        }
        rows.push(("graphMemory".to_owned(), flat as u128));
        rows.push(("nameMemory".to_owned(), names as u128));
        let time = graph.creation_time();
        if self.json {
            let root = graph.node(NodeIndex::ROOT).id();
            let time = time.map_or("null".to_owned(), |time| time.to_string());
            let rows: Vec<_> = rows.iter().map(|(name, count)| format!("\"{name}\":{count}")).collect();
            return Ok(format!("{{\"creationTime\":{time},\"root\":{root},{}}}", rows.join(",")));
        }
        let mut text = String::new();
        if let Some(time) = time {
            text += &format!("{time:>16} time of the snapshot, in microseconds since 1970\n");
        }
        for (name, count) in rows {
            let name = match name.as_str() {
                "graphMemory" => "bytes of memory for nodes and edges",
                "nameMemory" => "bytes of memory for names and frames",
                "bytes" => "bytes in all nodes",
                name => name,
            };
            text += &format!("{count:>16} {name}\n");
        }
        Ok(text)
    }
}
