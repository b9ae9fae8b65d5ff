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

use clap::{Args, Subcommand};

use super::Failure;

const EXAMPLES: &str = "\
Examples:
  about-memory snapshot census heap.fxsnapshot --breakdown type
  about-memory snapshot tree heap.fxsnapshot --breakdown stack --invert
  about-memory snapshot dominators heap.fxsnapshot
  about-memory snapshot paths heap.fxsnapshot --target 140737353 --max 5
  about-memory snapshot diff before.fxsnapshot after.fxsnapshot
  about-memory snapshot save 1234 heap.fxsnapshot
  about-memory snapshot save --typed 1234 heap.fxsnapshot     # of a program without a derive

A breakdown is JSON, as Firefox's takeCensus accepts it, or one of these names: default, type,
stack, label, count, bucket, allocationStack, internalType, objectClass, coarseType, filename.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    /// Count nodes, edges and names.
    Info(input::Info),
    /// Group all nodes by a breakdown.
    Census(census::Census),
    /// Show the census as a tree, the largest first.
    Tree(census::Tree),
    /// Show the dominator tree: which node alone keeps which others alive.
    Dominators(dominators::Dominators),
    /// Show why nodes are alive: shortest paths from the root.
    Paths(paths::Paths),
    /// List the nodes behind an entry of a census.
    Individuals(census::Individuals),
    /// Show what changed between two snapshots.
    Diff(census::Diff),
    /// Show nodes that retain a large part of the heap.
    Suspects(suspects::Suspects),
    /// Write the graph in another tool's format.
    Export(export::Export),
    /// Save a heap snapshot of a running process, or of a dump with the types of its blocks.
    Save(save::Save),
}

impl Snapshot {
    pub(super) fn run(self) -> Result<(), Failure> {
        let text = match self.question {
            Question::Info(info) => info.run()?,
            Question::Census(census) => census.run()?,
            Question::Tree(tree) => tree.run()?,
            Question::Dominators(dominators) => dominators.run()?,
            Question::Paths(paths) => paths.run()?,
            Question::Individuals(individuals) => individuals.run()?,
            Question::Diff(diff) => diff.run()?,
            Question::Suspects(suspects) => suspects.run()?,
            Question::Export(export) => export.run()?,
            Question::Save(save) => save.run()?,
        };
        let mut out = io::stdout().lock();
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        write!(out, "{text}{end}").and_then(|()| out.flush()).map_err(Failure::Output)
    }
}
