//! Reads dumps of DMD, written by Firefox or by the crate `dmd`, and groups their blocks by the stacks that
//! allocated and reported them.
//!
//! ```
//! use dmd_analyze::{Analysis, AnalyzeOptions, DumpReadOptions, RecordKind, read_from};
//!
//! let text = r##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
//!     "blockList": [{"req": 100, "slop": 12, "alloc": "A", "num": 3}],
//!     "traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: main (main.c:7)"}}"##;
//! let dump = read_from(text.as_bytes(), &DumpReadOptions::new())?;
//! let analysis = Analysis::new(dump, &AnalyzeOptions::new());
//! assert_eq!(analysis.sums(RecordKind::Live).usable(), 336);
//! assert!(analysis.text(&[]).to_string().contains("#01: main (main.c:7)"));
//! # Ok::<(), dmd_analyze::AnalyzeError>(())
//! ```
//!
//! Every field of a dump is untrusted: the reader has limits, and returns each fault as an error with its place.
//!
//! # How the parts work together
//!
//! ```text
//! print       how texts write numbers, text from dumps, and JSON
//! dump        a dump: its blocks, stacks and frames; the bounded reader of its file
//! recording   every event of a process: the dump of any time, figures over time, leaks
//! names       facts about functions from names and files: crate, container, type; which frames a view folds
//! symbolize   addresses to functions and lines, by build id
//! records     blocks grouped by their stacks, tables, faults of reporters
//! firefox     the texts of Firefox's tools, to the byte
//! output      an analysis as tables, JSON, folded stacks and flame graphs
//! coverage    the share of reported memory, and advice about unreported memory
//! program     views for the author of a Rust program: sites, folded frames, short names
//! engine      blocks in the memory of a process, or in a core file
//! ```
//!
//! Each module uses only the modules above it.
//!
//! # Features
//!
//! `symbols` (on by default) looks up the functions and lines of the addresses in a dump: `symbolize`. Most
//! dependencies of this crate are for this feature. Amounts and coverage need no symbols.
//!
//! # Limits
//!
//! The crate does not record blocks: the crate `dmd` does. It does not change dump files, except in [`clamp`].

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod coverage;
#[cfg_attr(not(feature = "symbols"), allow(dead_code, reason = "the look-up of symbols needs a part of it"))]
mod dump;
mod engine;
mod error;
mod firefox;
pub mod kept;
mod names;
mod output;
mod print;
pub mod program;
pub mod recording;
mod records;
#[cfg(feature = "symbols")]
pub mod symbolize;

pub use coverage::{Coverage, CoverageKey, ModuleCoverage, SuggestedSite, Suggestion, Suggestions};
pub use dmd_format::Mode;
pub use dump::{
    ByteSample, CallFrame, Dump, DumpAllocator, DumpPeak, DumpReadOptions, DumpStatistics, DumpTime,
    LoadedModule, ReportFaultKind, ScannedBlock, read, read_from, read_with,
};
pub use engine::{dark_matter, image};
pub use error::AnalyzeError;
pub use firefox::{BlockOptions, BlockText, ClampStats, ClassicText, FirefoxText, clamp};
pub use names::{BlockShape, FunctionName, TypeCertainty, TypeNames, TypeVerdict, short_type_name};
pub use output::{AnalysisJson, FlameFrame, FlameGraph, FoldedText, TablesText};
pub use records::{
    Analysis, AnalyzeOptions, BlockEntry, BlockSums, RecordKind, RecordOrder, ReportFault, StackFilter,
    TableKey,
};

/// Dumps from profiles of other programs: stacks of which only the sums are known.
pub mod profile {
    pub use crate::dump::{BuiltStack, DumpBuilder, is_heap_profile};
}

/// The function that `assert_coverage!` calls. Not for direct use: it may change in any version.
#[doc(hidden)]
pub mod __private {
    pub use crate::coverage::check;
}
