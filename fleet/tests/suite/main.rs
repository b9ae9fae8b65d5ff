//! The crate `memory-fleet`: tables in, answers out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_inputs;
#[cfg(feature = "ballista")]
mod cluster;
mod collecting;
mod command_line;
mod compacting;
mod questions;
mod serving;
mod simulated;
mod stacks;
mod statistics;
mod support;
