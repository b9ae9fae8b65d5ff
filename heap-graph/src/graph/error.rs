//! The reasons why a graph is rejected.

use core::fmt;

use super::NodeId;

/// Why a builder rejects a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph has no node, so it has no root.
    NoNodes,
    /// Two nodes have the same id.
    DuplicateId {
        /// The id.
        id: NodeId,
        /// The position of the first of them among the nodes, from 0.
        first: usize,
        /// The position of the second.
        second: usize,
    },
    /// An edge leads to an id that no node has.
    MissingReferent {
        /// The node that the edge belongs to.
        node: NodeId,
        /// Its position among the nodes, from 0.
        node_position: usize,
        /// The edge's position among the edges of the node, from 0.
        edge: usize,
        /// The id that no node has.
        referent: NodeId,
    },
    /// There are more of these things than 32 bits can count.
    TooMany(&'static str),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNodes => f.write_str("the graph has no nodes, not even a root"),
            Self::DuplicateId { id, first, second } => {
                write!(f, "nodes {first} and {second} have the same id, {id}")
            }
            Self::MissingReferent { node, edge, referent, .. } => {
                write!(f, "edge {edge} of node {node} leads to {referent}, but no node has that id")
            }
            Self::TooMany(what) => write!(f, "more {what} than 32 bits can count"),
        }
    }
}

impl std::error::Error for GraphError {}
