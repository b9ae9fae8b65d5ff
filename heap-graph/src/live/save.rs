//! Saving the heap of the running program, which is never in memory as a graph.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use memory_report::Skipped;
use memory_reporter::MallocSizeOfOps;

use super::reading::Live;
use super::stream::Stream;
use super::{HeapGraph, LiveOptions, Roots, What, now};
use crate::snapshot::WriteOptions;
use crate::whole_file::write_whole;

/// What was saved.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Saved {
    /// Nodes in the file, the root included.
    pub nodes: u64,
    /// Edges in the file.
    pub edges: u64,
    /// What the walk could not look at.
    pub skipped: Vec<Skipped>,
}

impl HeapGraph {
    /// Walks the values that `tell` adds, and writes them to a file as it goes, with all options at
    /// their defaults. See [`stream`](Self::stream).
    ///
    /// The file is readable by this user only, and is called `incomplete-` and its name until it is whole.
    /// A file of that name is replaced.
    ///
    /// # Errors
    ///
    /// Of the file.
    pub fn save(path: impl AsRef<Path>, tell: impl Fn(&mut Roots<'_>)) -> io::Result<Saved> {
        Self::save_with(path, LiveOptions::new(), &WriteOptions::new(), tell)
    }

    /// [`save`](Self::save) with options.
    ///
    /// # Errors
    ///
    /// Of the file.
    pub fn save_with(
        path: impl AsRef<Path>,
        options: LiveOptions<'_>,
        write: &WriteOptions,
        tell: impl Fn(&mut Roots<'_>),
    ) -> io::Result<Saved> {
        write_whole(path.as_ref(), |file| {
            let mut file = BufWriter::new(file);
            let saved = Self::stream(&mut file, options, write, tell)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?;
            Ok(saved)
        })
    }

    /// Walks the values that `tell` adds, and writes a snapshot as it goes.
    ///
    /// A block is written once the walk leaves it, and is then forgotten but for its address: about 100 bytes
    /// a block are kept, besides the blocks on the way from a root to where the walk is, and those with
    /// references to something not met before, which come last.
    ///
    /// `tell` is called twice: the file begins with the names of all roots, so the first time only these
    /// are taken.
    ///
    /// ```
    /// use heap_graph::snapshot::{ReadOptions, WriteOptions, read_from};
    /// use heap_graph::{HeapGraph, LiveOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let names = vec!["a".to_owned(), "bc".to_owned()];
    /// let mut file = Vec::new();
    /// HeapGraph::stream(&mut file, LiveOptions::new(), &WriteOptions::new(), |roots| roots.add("names", &names))?;
    /// // The root, the value told, its block, and the blocks of two strings.
    /// assert_eq!(read_from(&file[..], &ReadOptions::new())?.node_count(), 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Of the file. The walk of a value goes on to its end even so; those told after it are left out.
    pub fn stream(
        file: &mut dyn Write,
        options: LiveOptions<'_>,
        write: &WriteOptions,
        tell: impl Fn(&mut Roots<'_>),
    ) -> io::Result<Saved> {
        let mut roots = Roots(What::Name(Vec::new()));
        tell(&mut roots);
        let names = roots.0.into_names();
        let live = Live::writing(options, Stream::new(file, now(), write), &names);
        let ops = Box::new(MallocSizeOfOps::new(live));
        let mut roots = Roots(What::Walk { ops, at_most: names.len() });
        tell(&mut roots);
        let mut ops = roots.0.into_walk().expect("it was made above");
        let skipped = ops.skipped().to_vec();
        let (nodes, edges) = ops.into_reading().finish_file(&names)?;
        Ok(Saved { nodes, edges, skipped })
    }
}
