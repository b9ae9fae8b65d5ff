//! Saves the heap of the running program, without a graph in memory.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use memory_report::SkippedPart;
use memory_report::new_file::{self, Readers};
use memory_reporter::MallocSizeOfOps;

use super::options::LiveGraphOptions;
use super::reading::LiveReading;
use super::roots::{Roots, RootsPurpose};
use super::stream::SnapshotStream;
use super::{HeapGraph, now};
use crate::snapshot::SnapshotWriteOptions;

/// A summary of a saved snapshot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SavedSnapshot {
    /// The number of nodes in the file, including the root.
    pub nodes: u64,
    /// The number of edges in the file.
    pub edges: u64,
    /// The values that the walk could not measure.
    pub skipped: Vec<SkippedPart>,
}

impl HeapGraph {
    /// Walks the values that `add_roots` adds, and writes them to a file during the walk, with default options. See
    /// [`stream`](Self::stream).
    ///
    /// On Unix, only the user of this process can read the file. Until the file is complete, it has a random name that
    /// starts with `incomplete-`, in the same folder. An existing file of the final name is replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created, written or renamed.
    pub fn save(path: impl AsRef<Path>, add_roots: impl Fn(&mut Roots<'_>)) -> io::Result<SavedSnapshot> {
        Self::save_with(path, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), add_roots)
    }

    /// [`save`](Self::save) with options.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`save`](Self::save).
    pub fn save_with(
        path: impl AsRef<Path>,
        options: LiveGraphOptions<'_>,
        write: &SnapshotWriteOptions,
        add_roots: impl Fn(&mut Roots<'_>),
    ) -> io::Result<SavedSnapshot> {
        new_file::write(path.as_ref(), Readers::User, |file| {
            let mut file = BufWriter::new(file);
            let saved = Self::stream(&mut file, options, write, add_roots)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?;
            Ok(saved)
        })
    }

    /// Walks the values that `add_roots` adds, and writes a snapshot during the walk.
    ///
    /// The walk writes a block when it leaves the block. Of a written block, it keeps only the id and the addresses,
    /// in about 100 bytes. The walk also keeps the blocks on the path from a root to the current position. It keeps
    /// blocks with references to addresses that it has not met yet, and writes them last.
    ///
    /// The function calls `add_roots` twice. The first call only records the names of the roots, since they are at
    /// the start of the file.
    ///
    /// ```
    /// use heap_graph::HeapGraph;
    /// use heap_graph::live::LiveGraphOptions;
    /// use heap_graph::snapshot::{SnapshotReadOptions, SnapshotWriteOptions, read_from};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let names = vec!["a".to_owned(), "bc".to_owned()];
    /// let mut file = Vec::new();
    /// HeapGraph::stream(&mut file, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), |roots| roots.add("names", &names))?;
    /// // The root, the value, its block, and the blocks of two strings.
    /// assert_eq!(read_from(&file[..], &SnapshotReadOptions::new())?.node_count(), 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if `file` cannot be written. The walk of the current value continues to its end; later values
    /// are left out.
    pub fn stream(
        file: &mut dyn Write,
        options: LiveGraphOptions<'_>,
        write: &SnapshotWriteOptions,
        add_roots: impl Fn(&mut Roots<'_>),
    ) -> io::Result<SavedSnapshot> {
        let mut roots = Roots(RootsPurpose::Name(Vec::new()));
        add_roots(&mut roots);
        let RootsPurpose::Name(names) = roots.0 else { unreachable!("the purpose of roots is fixed") };
        let live = LiveReading::new(options, |descriptions| {
            SnapshotStream::new(file, now(), write, &names, descriptions)
        });
        let ops = Box::new(MallocSizeOfOps::new(live));
        let mut roots = Roots(RootsPurpose::Save(ops, names.len()));
        add_roots(&mut roots);
        let RootsPurpose::Save(mut ops, _) = roots.0 else { unreachable!("the purpose of roots is fixed") };
        let skipped = ops.skipped().to_vec();
        let mut live = ops.into_reading();
        // The file names roots that the second call of `add_roots` has not added. Adds an empty value for each.
        while live.roots() < names.len() as u64 {
            live.open_root("", || "", &());
            live.close_root();
        }
        let (stream, descriptions, targets) = live.finish();
        let (nodes, edges) = stream.finish(&descriptions, &targets)?;
        Ok(SavedSnapshot { nodes, edges, skipped })
    }
}
