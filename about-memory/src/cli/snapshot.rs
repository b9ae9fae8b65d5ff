//! `about-memory snapshot`: what a heap snapshot tells.

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

A breakdown is JSON, as takeCensus of Firefox has it, or a name: default, type, stack, label, count,
bucket, allocationStack, internalType, objectClass, coarseType, filename.";

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
    /// Sort all nodes by a breakdown.
    Census(census::Census),
    /// The census as a tree, heaviest first.
    Tree(census::Tree),
    /// Which node keeps what alive.
    Dominators(dominators::Dominators),
    /// Why nodes are alive: shortest paths from the root.
    Paths(paths::Paths),
    /// The nodes behind a part of a census.
    Individuals(census::Individuals),
    /// What changed from one snapshot to another.
    Diff(census::Diff),
    /// What retains a big part of the heap.
    Suspects(suspects::Suspects),
    /// Write it for another tool.
    Export(export::Export),
    /// Save the heap of a running process.
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
