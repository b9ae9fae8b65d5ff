//! Shortest paths to nodes.

use std::fmt::Write as _;

use clap::Args;
use heap_graph::NodeIndex;
use heap_graph::paths::GraphPath;

use super::super::Failure;
use super::dominators::title;
use super::input::SnapshotInput;

/// With `--shortest`, the search for the paths to one node examines at most this many edges.
const EFFORT: u64 = 200_000_000;

#[derive(Args)]
pub(super) struct PathsCommand {
    #[command(flatten)]
    input: SnapshotInput,
    /// Show paths to these nodes, by id.
    #[arg(long = "target", value_name = "ID", required = true, num_args = 1..)]
    targets: Vec<u64>,
    /// Show at most this many rows of each table. A row is a path; each node has a table.
    #[arg(long, alias = "max", value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    limit: usize,
    /// Start from this node instead of the root.
    #[arg(long, value_name = "ID")]
    start: Option<u64>,
    /// Find the shortest paths that visit each node at most once. By default, as in Firefox, each path ends with a
    /// different edge, and is the shortest path that ends with this edge.
    #[arg(long)]
    shortest: bool,
    /// Write JSON instead of text.
    #[arg(long)]
    json: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("there must be at least one path".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("not a number".to_owned()),
    }
}

impl PathsCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        let graph = self.input.read()?;
        let find = |id: &u64| self.input.find(&graph, *id).map(heap_graph::HeapNode::index);
        let start = self.start.as_ref().map_or(Ok(NodeIndex::ROOT), find)?;
        let targets = self.targets.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let mut found = heap_graph::shortest_paths(&graph, start, &targets, self.limit);
        if self.shortest {
            for (target, paths) in &mut found.paths {
                let target = find(&target.0)?;
                *paths = heap_graph::paths::k_shortest_paths(&graph, start, target, self.limit, EFFORT);
            }
        }
        if self.json {
            return Ok(found.to_json());
        }
        let mut text = String::new();
        let name = |id: heap_graph::NodeId| graph.find(id).map_or(String::new(), title);
        for (target, paths) in &found.paths {
            let plural = if paths.len() == 1 { "path" } else { "paths" };
            let _ =
                writeln!(text, "{target} {}: {} {plural}", about_memory::escape(&name(*target)), paths.len());
            for path in paths {
                text.push('\n');
                write(&mut text, path, &name);
                let _ = writeln!(text, "  {target} {}", about_memory::escape(&name(*target)));
            }
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        Ok(text)
    }
}

fn write(text: &mut String, path: &GraphPath<'_>, name: &impl Fn(heap_graph::NodeId) -> String) {
    for part in path {
        let node = name(part.predecessor);
        let edge = part.edge.as_ref().map_or("(no name)".to_owned(), ToString::to_string);
        let (node, edge) = (about_memory::escape(&node), about_memory::escape(&edge));
        let _ = writeln!(text, "  {} {node}\n    .{edge}", part.predecessor);
    }
}
