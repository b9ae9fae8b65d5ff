//! Memory profiles and reports in the formats of other tools.
//!
//! All formats of stacks are written from one [`StackProfile`]. Equal data gives equal bytes. If a format cannot hold
//! an amount, the writer returns an [`ExportError`] with the names of the format and of the amount.
//!
//! ```
//! use memory_export::{ProfileFrame, SampleLabels, StackProfileBuilder, ProfileValue, pprof};
//!
//! let mut builder = StackProfileBuilder::new(&[ProfileValue::LiveBlocks, ProfileValue::LiveBytes]);
//! let frame = builder.frame(&ProfileFrame { function: Some("app::load"), ..ProfileFrame::default() });
//! let stack = builder.stack(&[frame]);
//! let labels = builder.labels(&SampleLabels { reporter: Some("explicit/cache"), ..SampleLabels::default() });
//! builder.sample(stack, labels, Some(64), &[2, 128]);
//! let stacks = builder.finish()?;
//!
//! let mut file = Vec::new();
//! pprof::write(&stacks, &pprof::PprofOptions::new(), &mut file)?;
//! let read = pprof::read(&*file, &pprof::PprofReadOptions::new())?;
//! assert_eq!(read.total(ProfileValue::LiveBytes), Some(128));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | format | clients |
//! | --- | --- | --- |
//! | [`pprof`] | `profile.proto`, compressed; also read | `go tool pprof`, Pyroscope, Parca, speedscope |
//! | [`dhat`] | DHAT's JSON, version 2 | `dh_view.html` of Valgrind |
//! | [`speedscope`] | speedscope's JSON | speedscope |
//! | [`heaptrack`] | heaptrack's text | `heaptrack_gui`, `heaptrack_print` |
//! | [`firefox_profiler`] | processed profile | profiler.firefox.com, `samply load` |
//! | [`folded`] | folded stacks | inferno, speedscope, Perfetto |
//! | [`chrome_trace`] | trace events: counters over time | ui.perfetto.dev |
//! | [`open_metrics`] | `OpenMetrics`, and the text of Prometheus | Prometheus, Grafana |
//! | `parquet` (feature) | Parquet: tables of many runs | `DuckDB`, polars, pyarrow, Spark, `ClickHouse` |
//!
//! The feature `dmd` converts a dump or a recording of DMD to a [`StackProfile`]. The feature `snapshot` converts a
//! heap snapshot.
//!
//! The crate does not read dumps, does not look up symbols (`dmd-analyze` does both), and sends nothing over a network.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod beside;
mod error;
mod grouped;
mod json;
mod profile_format;
mod stack_profile;
mod texts;

pub mod chrome_trace;
pub mod dhat;
#[cfg(feature = "dmd")]
pub mod dmd;
pub mod firefox_profiler;
pub mod folded;
pub mod heaptrack;
pub mod open_metrics;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod pprof;
#[cfg(feature = "snapshot")]
pub mod snapshot;
pub mod speedscope;

pub use error::{ExportError, ImportError};
pub use profile_format::ProfileFormat;
pub use stack_profile::{
    BlockOwner, NewStacks, OwnerSum, OwnerSums, ProfileEvent, ProfileFacts, ProfileFrame, ProfileFrameId,
    ProfileModule, ProfileModuleId, ProfileSample, ProfileStackId, ProfileValue, SampleLabels,
    SampleLabelsId, StackProfile, StackProfileBuilder,
};
