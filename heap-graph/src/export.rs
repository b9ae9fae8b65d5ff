//! Exports graphs for other tools: V8's `.heapsnapshot`, and DOT and `GraphML` of a node's neighbourhood.

mod neighbourhood;
mod v8;

pub use neighbourhood::{Neighbourhood, NeighbourhoodOptions};
pub use v8::write_v8;
