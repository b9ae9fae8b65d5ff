//! Errors when reading debug information, memory and dumps.

use dmd_analyze::AnalyzeError;
use heap_graph::graph::GraphError;
use thiserror::Error;

/// The reason why the blocks of a heap cannot get types.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TypedError {
    /// A file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The program is not a supported object file; the text is the reason.
    #[error("not a program: {0}")]
    NotAProgram(String),
    /// The debug information is damaged. The fields are the offset of the unit in `.debug_info`, and the reason.
    #[error(".debug_info: unit at 0x{0:x}: {1}")]
    DebugInfo(u64, #[source] gimli::Error),
    /// The debug information exceeds a limit of the reader. The fields are the offset of the unit in `.debug_info`,
    /// and the limit.
    #[error(".debug_info: unit at 0x{0:x}: {1}")]
    Bounded(u64, DebugInfoLimit),
    /// The file is not a core file of a 64-bit little-endian ELF system; the text is the reason.
    #[error("not a core file: {0}")]
    NotACore(&'static str),
    /// The blocks of the dump cannot be used.
    #[error(transparent)]
    Dump(#[from] AnalyzeError),
    /// The graph exceeds its limits.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// A limit of the reader of debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DebugInfoLimit {
    /// The entries have more attributes, or more abbreviations are read, than a file of this size needs.
    #[error("too many attributes for the size of the file")]
    Work,
    /// The entries are nested more than 256 levels deep.
    #[error("entries are nested more than 256 levels deep")]
    Nesting,
    /// All names together are larger than 256 MiB.
    #[error("names take more than 256 MiB")]
    Names,
    /// The compressed sections exceed the limit for unpacked bytes.
    #[error("compressed sections take more than 1 GiB after unpacking")]
    Unpacked,
}
