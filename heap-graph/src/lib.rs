//! Heap graphs: snapshots, census, dominators and shortest paths, with the answers of Firefox.
#![deny(unsafe_code)]

mod coarse_type;
mod error;
mod frame;
mod graph;
pub mod snapshot;
mod text;

pub use coarse_type::CoarseType;
pub use error::{GraphError, MessageError, Problem, SnapshotError};
pub use frame::{FrameId, FrameParts};
pub use graph::{Edge, Graph, GraphBuilder, Node, NodeId, NodeIndex, NodeParts, Stack};
pub use text::{Text, TextId};
