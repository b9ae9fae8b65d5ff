//! Nodes and classes that retain a large part of the heap.

use std::fmt::Write as _;

use clap::Args;
use heap_graph::dominators::SuspectOptions;
use heap_graph::{DominatorTree, NodeIndex};

use super::super::Failure;
use super::input::SnapshotInput;

#[derive(Args)]
pub(super) struct SuspectsCommand {
    #[command(flatten)]
    input: SnapshotInput,
    /// A suspect retains at least this percentage of the heap.
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    percent: f64,
    /// Write JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl SuspectsCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        if !(0.0..=100.0).contains(&self.percent) {
            return Err(Failure::Usage(format!("--percent {} is not between 0 and 100", self.percent)));
        }
        let graph = self.input.read()?;
        let tree = DominatorTree::new(&graph);
        if self.json {
            let options = SuspectOptions::new().percent(self.percent);
            let suspects = heap_graph::dominators::suspects(&tree, &options);
            let suspects: Vec<_> = suspects.iter().map(heap_graph::dominators::Suspect::to_json).collect();
            return Ok(format!("[{}]", suspects.join(",")));
        }
        Ok(text(&tree, self.percent))
    }
}

/// Returns the suspects that retain at least this percentage of the heap, as a text.
pub(super) fn text(tree: &DominatorTree<'_>, percent: f64) -> String {
    let suspects = heap_graph::dominators::suspects(tree, &SuspectOptions::new().percent(percent));
    let whole = tree.retained_size(NodeIndex::ROOT).unwrap_or_default();
    let mut text = format!("{whole} bytes in all\n");
    if suspects.is_empty() {
        let _ = writeln!(text, "No node or class retains {percent}% of these bytes.");
    }
    for suspect in suspects {
        let class = suspect.class.to_string();
        let class = about_memory::escape(&class);
        let (size, part) = (suspect.retained_size, suspect.percent);
        let _ = match &suspect.nodes[..] {
            [node] => writeln!(text, "\n{size} ({part:.1}%) retained by {class} {node}"),
            nodes => writeln!(text, "\n{size} ({part:.1}%) retained by {} nodes of {class}", nodes.len()),
        };
        for step in suspect.path.iter().skip(1) {
            let class = step.class.to_string();
            let class = about_memory::escape(&class);
            let _ = writeln!(text, "  including {} retained by {class} {}", step.retained_size, step.node);
        }
        if let Some(last) = suspect.path.last() {
            let _ = writeln!(text, "  this node directly dominates {} nodes", last.children);
        }
    }
    text
}
