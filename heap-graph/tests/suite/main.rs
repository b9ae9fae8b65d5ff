//! Heap graphs, tried through their public face, and against what a real Firefox answers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod census;
mod dmd;
mod dominators;
mod export;
mod golden;
mod handmade;
mod live;
mod mutations;
mod odd;
mod paths;
mod properties;
mod suspects;
mod trees;
mod worker;
mod write;
