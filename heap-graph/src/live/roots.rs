//! The values that a walk starts from.

use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use memory_reporter::{MallocSizeOf, MallocSizeOfOps, measure::SkipReason};

use super::collected_graph::CollectedGraph;
use super::reading::LiveReading;
use super::sink::GraphSink;
use super::stream::SnapshotStream;

/// The values that a live graph starts from.
pub struct Roots<'a>(pub(super) RootsPurpose<'a>);

/// Whether the values are collected, saved, or only named.
pub(super) enum RootsPurpose<'a> {
    /// The walk goes into memory.
    Collect(Box<MallocSizeOfOps<LiveReading<'a, CollectedGraph>>>),
    /// The walk of the next values, as many as this, goes to a file.
    Save(Box<MallocSizeOfOps<LiveReading<'a, SnapshotStream<'a>>>>, usize),
    /// Only their names are noted.
    Name(Vec<String>),
}

impl fmt::Debug for Roots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots").finish_non_exhaustive()
    }
}

impl Roots<'_> {
    /// Adds a value with an edge `name` from the root. The size of its node is 0, since the value's own bytes are
    /// not in a block of their own.
    ///
    /// # Panics
    ///
    /// If the value's code panics during the walk. A caller that catches the panic may add other values: the nodes met
    /// so far stay, and [`HeapGraph::skipped`](super::HeapGraph::skipped) lists the value.
    pub fn add<T: MallocSizeOf + ?Sized>(&mut self, name: &str, value: &T) {
        match &mut self.0 {
            RootsPurpose::Name(names) => names.push(name.to_owned()),
            RootsPurpose::Collect(ops) => walk(ops, name, value),
            RootsPurpose::Save(ops, left) => {
                if *left > 0 && !ops.reading().sink().has_failed() {
                    *left -= 1;
                    walk(ops, name, value);
                }
            }
        }
    }
}

fn walk<T: MallocSizeOf + ?Sized, S: GraphSink>(
    ops: &mut MallocSizeOfOps<LiveReading<'_, S>>,
    name: &str,
    value: &T,
) {
    ops.reading().open_root(name, core::any::type_name::<T>, value);
    let walked = catch_unwind(AssertUnwindSafe(|| value.size_of_excluding_this(ops)));
    ops.reading().close_root();
    if let Err(panic) = walked {
        ops.skip::<T>(SkipReason::Panicked);
        resume_unwind(panic);
    }
}
