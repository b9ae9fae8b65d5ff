//! Tests heap graphs through their public interface, and compares them with the answers of a real Firefox.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod cancelling;
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
mod write;
