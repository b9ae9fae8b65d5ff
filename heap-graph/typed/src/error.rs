//! Errors when reading debug information, memory and dumps.

use core::fmt;

use dmd_analyze::AnalyzeError;
use heap_graph::graph::GraphError;

/// The reason why the blocks of a heap cannot get types.
#[derive(Debug)]
#[non_exhaustive]
pub enum TypedError {
    /// A file cannot be read.
    Io(std::io::Error),
    /// The program is not a supported object file; the text is the reason.
    NotAProgram(String),
    /// The debug information is damaged. The fields are the offset of the unit in `.debug_info`, and the reason.
    DebugInfo(u64, gimli::Error),
    /// The debug information exceeds a limit of the reader. The fields are the offset of the unit in `.debug_info`,
    /// and the limit.
    Bounded(u64, DebugInfoLimit),
    /// The file is not a core file of a 64-bit little-endian ELF system; the text is the reason.
    NotACore(&'static str),
    /// The blocks of the dump cannot be used.
    Dump(AnalyzeError),
    /// The graph exceeds its limits.
    Graph(GraphError),
}

/// A limit of the reader of debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DebugInfoLimit {
    /// The entries have more attributes, or more abbreviations are read, than a file of this size needs.
    Work,
    /// The entries are nested more than 256 levels deep.
    Nesting,
    /// All names together are larger than 256 MiB.
    Names,
    /// The compressed sections exceed the limit for unpacked bytes.
    Unpacked,
}

impl fmt::Display for TypedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotAProgram(why) => write!(f, "not a program: {why}"),
            Self::DebugInfo(unit, error) => write!(f, ".debug_info: unit at 0x{unit:x}: {error}"),
            Self::Bounded(unit, bound) => {
                let what = match bound {
                    DebugInfoLimit::Work => "too many attributes for the size of the file",
                    DebugInfoLimit::Nesting => "entries are nested more than 256 levels deep",
                    DebugInfoLimit::Names => "names take more than 256 MiB",
                    DebugInfoLimit::Unpacked => "compressed sections take more than 1 GiB after unpacking",
                };
                write!(f, ".debug_info: unit at 0x{unit:x}: {what}")
            }
            Self::NotACore(why) => write!(f, "not a core file: {why}"),
            Self::Dump(error) => error.fmt(f),
            Self::Graph(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TypedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::DebugInfo(_, error) => Some(error),
            Self::Dump(error) => Some(error),
            Self::Graph(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for TypedError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<AnalyzeError> for TypedError {
    fn from(error: AnalyzeError) -> Self {
        Self::Dump(error)
    }
}

impl From<GraphError> for TypedError {
    fn from(error: GraphError) -> Self {
        Self::Graph(error)
    }
}
