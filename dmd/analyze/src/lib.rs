//! Reads dumps of DMD, written by Firefox or by the crate `dmd`, and groups their blocks by the stacks that
//! allocated and reported them.
//!
//! ```
//! use dmd_analyze::{Analysis, AnalyzeOptions, ReadOptions, RecordKind, read_from};
//!
//! let text = r##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
//!     "blockList": [{"req": 100, "slop": 12, "alloc": "A", "num": 3}],
//!     "traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: main (main.c:7)"}}"##;
//! let dump = read_from(text.as_bytes(), &ReadOptions::new())?;
//! let analysis = Analysis::new(dump, &AnalyzeOptions::new());
//! assert_eq!(analysis.sums(RecordKind::Live).usable(), 336);
//! assert!(analysis.text(&[]).to_string().contains("#01: main (main.c:7)"));
//! # Ok::<(), dmd_analyze::AnalyzeError>(())
//! ```
//!
//! Every field of a dump is untrusted: the reader has limits, and reports each fault as an error with its place.
//!
//! # How the parts work together
//!
//! ```text
//! input                  the bounded reader of JSON
//! sample                 what a sample by bytes is
//! frame, frames          calls on stacks as data: parsed once when read, printed once at the end
//! dump, read, peak, at, outline    a dump, its blocks at the peak, and how to read it from a file
//! blocks                 its blocks, stacks and frames one by one, for programs that write other formats
//! recording              every event of a process: the dump of any time, lines over time, leaks
//! symbolize              addresses to functions and lines, by build id
//! allocators, owner, container, source_path    facts about a function from names and files
//! type_name              the type of each block, from its allocation stack
//! stacks, records        stacks cut for comparison, blocks grouped by them, tables
//! text, classic, by_text, json, folded, flame  an analysis as text
//! program                the same for the author of a Rust program: sites, folded frames, short names
//! suggest, coverage      advice about unreported memory, and the share of reported memory
//! claims, report_faults  reporters whose amounts are not those of their blocks, and pointers without a block
//! framework              the frames of memory-reporter, which say nothing about a reporter
//! clamp, referrers, scanned   scan mode
//! dark_matter            blocks that an engine passes in memory
//! image                  blocks in the memory of another process, or in a core file
//! ```
//!
//! # Features
//!
//! `symbols` (on by default) looks up functions and lines of the addresses in a dump: `symbolize`. It is most of the
//! crates that this one depends on. Amounts and coverage need no symbols.
//!
//! # Limits
//!
//! The crate does not record blocks: the crate `dmd` does. It does not change a dump, except in [`clamp`].

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod allocators;
mod amounts;
mod at;
mod blocks;
mod by_text;
mod claims;
mod clamp;
mod classic;
mod clean;
mod container;
mod coverage;
pub mod dark_matter;
#[cfg_attr(not(feature = "symbols"), allow(dead_code, reason = "the look-up of symbols needs a part of it"))]
mod dump;
mod error;
mod faulty_pointer;
mod flame;
mod fold;
mod folded;
#[cfg_attr(not(feature = "symbols"), allow(dead_code, reason = "the look-up of symbols needs a part of it"))]
mod frame;
mod frame_names;
#[cfg_attr(not(feature = "symbols"), allow(dead_code, reason = "the look-up of symbols needs a part of it"))]
mod frames;
mod framework;
pub mod image;
mod json;
mod keys;
mod measurements;
mod mode;
mod options;
mod outline;
mod owner;
mod peak;
pub mod program;
mod read;
pub mod recording;
mod records;
mod referrers;
mod report_faults;
mod sample;
mod scanned;
#[cfg_attr(not(feature = "symbols"), allow(dead_code, reason = "the look-up of symbols needs a part of it"))]
mod source_path;
mod stacks;
mod suggest;
#[cfg(feature = "symbols")]
pub mod symbolize;
mod text;
mod trace_id;
mod type_name;
mod workspace;

pub use blocks::Blocks;
pub use by_text::ByText;
pub use clamp::{ClampStats, clamp};
pub use classic::Classic;
pub use coverage::{Coverage, CoverageKey, ModuleCoverage};
pub use dump::{Dump, Module};
pub use error::AnalyzeError;
pub use faulty_pointer::ReportFaultKind;
pub use flame::{FlameFrame, FlameGraph};
pub use folded::Folded;
pub use frame::Frame;
pub use json::Json;
pub use mode::Mode;
pub use options::{AnalyzeOptions, By, Filter, SortBy};
pub use peak::At;
pub use peak::{Peak, Statistics};
pub use read::{ReadOptions, read, read_from, read_with};
pub use records::{Analysis, RecordKind, Sums};
pub use referrers::{BlockOptions, BlockText};
pub use report_faults::ReportFault;
pub use sample::Sample;
pub use scanned::ScannedBlock;
pub use suggest::{Suggestion, Suggestions};
pub use text::Text;
pub use type_name::{Certainty, FunctionName, Shape, TypeNames, Verdict, short_type_name};

/// The function that the macro calls. Not for direct use; it may change in any version.
#[doc(hidden)]
pub mod __private {
    pub use crate::coverage::check;
}
