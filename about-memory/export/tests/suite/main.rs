//! Tests of the writers. The tests read each file by its published schema, and compare its sums with the sums of the
//! stacks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod building;
mod chrome_trace;
mod dhat;
mod firefox_profiler;
mod folded;
mod heaptrack;
mod inputs;
mod open_metrics;
#[cfg(feature = "parquet")]
mod parquet;
mod pprof;
#[cfg(feature = "dmd")]
mod profile_dumps;
mod speedscope;
