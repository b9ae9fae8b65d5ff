//! Reads dumps and groups their blocks by where they were allocated and reported.
//!
//! [`read`] takes a file of DMD, ours or Firefox's; [`Analysis`] groups its blocks, or those of the
//! difference of two, and [`Analysis::text`] is what Firefox's `dmd.py` prints.

mod allocators;
mod clamp;
mod dump;
mod error;
mod keys;
mod options;
mod read;
mod records;
mod referrers;
mod stacks;
mod text;
mod texts;

pub use clamp::{ClampStats, clamp};
pub use dump::{Dump, Mode};
pub use error::DumpError;
pub use options::{AnalyzeOptions, Filter, SortBy};
pub use read::{ReadOptions, read, read_from, read_with};
pub use records::{Analysis, RecordKind, Sums};
pub use referrers::{BlockOptions, BlockText};
pub use text::Text;
