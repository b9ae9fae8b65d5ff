//! The values at which a walk starts.

use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use memory_reporter::{MallocSizeOf, MallocSizeOfOps, measure::SkipReason};

use super::collected_graph::CollectedGraph;
use super::reading::LiveReading;
use super::sink::GraphSink;
use super::stream::SnapshotStream;

/// The values at which a live graph starts.
pub struct Roots<'a>(pub(super) RootsPurpose<'a>);

/// The purpose of the values: they are collected, saved, or only named.
pub(super) enum RootsPurpose<'a> {
    /// Collects the walk in memory.
    Collect(Box<MallocSizeOfOps<LiveReading<'a, CollectedGraph>>>),
    /// Saves the walk to a file. The number is the number of values that the walk still accepts.
    Save(Box<MallocSizeOfOps<LiveReading<'a, SnapshotStream<'a>>>>, usize),
    /// Only records the names of the values.
    Name(Vec<String>),
}

impl fmt::Debug for Roots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots").finish_non_exhaustive()
    }
}

impl Roots<'_> {
    /// Adds a value with an edge `name` from the root. The size of its node is 0, since the bytes of the value itself
    /// are not a heap block.
    ///
    /// # Panics
    ///
    /// Panics if the value's code panics during the walk. A caller that catches the panic may add other values. The
    /// nodes met so far stay in the graph, and [`HeapGraph::skipped`](super::HeapGraph::skipped) lists the value.
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
