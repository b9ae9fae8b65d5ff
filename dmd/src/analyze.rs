//! Reads dumps and groups their blocks by where they were allocated and reported.
//!
//! [`read`] takes a file of DMD, ours or Firefox's; [`Analysis`] groups its blocks, or those of the
//! difference of two, and [`Analysis::text`] is what Firefox's `dmd.py` prints.

mod allocators;
mod by_text;
mod clamp;
mod classic;
pub(crate) mod container;
mod coverage;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod dark_matter;
pub(crate) mod dump;
mod error;
mod flame;
mod folded;
mod json;
mod keys;
mod measurements;
mod options;
mod owner;
mod read;
mod records;
mod referrers;
mod scanned;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod sites;
mod stacks;
mod suggest;
mod text;
pub(crate) mod texts;

pub use by_text::ByText;
pub use clamp::{ClampStats, clamp};
pub use classic::Classic;
pub use coverage::{Coverage, ModuleCoverage};
pub use dump::{Dump, Mode};
pub use error::AnalyzeError;
pub use flame::{FlameFrame, FlameGraph};
pub use folded::Folded;
pub use json::Json;
pub use options::{AnalyzeOptions, By, Filter, SortBy};
pub use read::{ReadOptions, read, read_from, read_with};
pub use records::{Analysis, RecordKind, Sums};
pub use referrers::{BlockOptions, BlockText};
pub use scanned::ScannedBlock;
pub use suggest::{Suggestion, Suggestions};
pub use text::Text;

/// What the macro calls. Not for direct use, and without any promise.
#[doc(hidden)]
pub mod __private {
    pub use super::coverage::check;
}
