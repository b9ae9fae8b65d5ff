//! `about-memory snapshot`: analyses of a heap snapshot.

mod census;
mod dominators;
mod export;
mod input;
mod paths;
mod save;
mod suspects;
mod table;

use std::io::{self, Write as _};

use std::path::Path;

use clap::{Args, Subcommand};
use heap_graph::DominatorTree;
use heap_graph::snapshot::SnapshotReadOptions;

use super::file_kind::FileKind;
use super::{Failure, heap};

const EXAMPLES: &str = "\
Examples:
  about-memory snapshot census heap.fxsnapshot --breakdown type
  about-memory snapshot tree heap.fxsnapshot --breakdown stack --invert
  about-memory snapshot dominators heap.fxsnapshot
  about-memory snapshot paths heap.fxsnapshot --target 140737353 --limit 5
  about-memory snapshot diff before.fxsnapshot after.fxsnapshot
  about-memory snapshot save 1234 heap.fxsnapshot
  about-memory snapshot save --typed 1234 heap.fxsnapshot     # of a program without a derive

A breakdown is JSON, as Firefox's takeCensus accepts it, or one of these names: default, type,
stack, label, count, bucket, allocationStack, internalType, objectClass, coarseType, filename.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SnapshotCommand {
    #[command(subcommand)]
    question: SnapshotQuestion,
}

#[derive(Subcommand)]
enum SnapshotQuestion {
    /// Count nodes, edges and names.
    Info(input::InfoCommand),
    /// Group all nodes by a breakdown.
    Census(census::CensusCommand),
    /// Show the census as a tree, the largest first.
    Tree(census::TreeCommand),
    /// Show the dominator tree: which nodes each node alone keeps alive.
    Dominators(dominators::DominatorsCommand),
    /// Show why nodes are alive: shortest paths from the root.
    Paths(paths::PathsCommand),
    /// List the nodes behind an entry of a census.
    Individuals(census::IndividualsCommand),
    /// Show what changed between two snapshots.
    Diff(census::SnapshotDiffCommand),
    /// Show nodes that retain a large part of the heap.
    Suspects(suspects::SuspectsCommand),
    /// Write the graph in another tool's format.
    Export(export::SnapshotExportCommand),
    /// Save a heap snapshot of a running process, or of a dump with the types of its blocks.
    Save(save::SnapshotSaveCommand),
}

/// The first screen of a snapshot shows this many classes.
const FIRST_CLASSES: usize = 15;

/// The first screen names nodes that retain at least this percentage of the heap.
const FIRST_PERCENT: f64 = 10.0;

/// Returns the first screen of a snapshot: its suspects, and the classes that retain the most memory.
pub(super) fn first_screen(path: &Path, max_bytes: u64) -> Result<String, Failure> {
    let options = SnapshotReadOptions::new().max_bytes(max_bytes);
    let graph = heap_graph::snapshot::read_with(path, &options)
        .map_err(|error| Failure::File(path.display().to_string(), error.into()))?;
    let tree = DominatorTree::new(&graph);
    let (nodes, edges) = (graph.node_count(), graph.edge_count());
    let (suspects, classes) =
        (suspects::text(&tree, FIRST_PERCENT), dominators::by_class(&tree, FIRST_CLASSES));
    Ok(format!("{nodes} nodes, {edges} edges, {suspects}\n{classes}"))
}

impl SnapshotCommand {
    /// Returns the kinds of files that the question reads.
    pub(super) fn kinds(&self) -> &'static [FileKind] {
        match self.question {
            SnapshotQuestion::Save(_) => heap::TYPED,
            _ => &[FileKind::Snapshot],
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        let text = match self.question {
            SnapshotQuestion::Info(info) => info.run()?,
            SnapshotQuestion::Census(census) => census.run()?,
            SnapshotQuestion::Tree(tree) => tree.run()?,
            SnapshotQuestion::Dominators(dominators) => dominators.run()?,
            SnapshotQuestion::Paths(paths) => paths.run()?,
            SnapshotQuestion::Individuals(individuals) => individuals.run()?,
            SnapshotQuestion::Diff(diff) => diff.run()?,
            SnapshotQuestion::Suspects(suspects) => suspects.run()?,
            SnapshotQuestion::Export(export) => export.run()?,
            SnapshotQuestion::Save(save) => save.run()?,
        };
        let mut out = io::stdout().lock();
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        write!(out, "{text}{end}").and_then(|()| out.flush()).map_err(Failure::Output)
    }
}
