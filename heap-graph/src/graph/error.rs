//! The reasons why a graph is rejected.

use core::fmt;

use super::NodeId;

/// The reason why a builder rejects a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph has no node, so it has no root.
    NoNodes,
    /// Two nodes have the same id.
    DuplicateId {
        /// The id of both nodes.
        id: NodeId,
        /// The position of the first node, counted from 0.
        first: usize,
        /// The position of the second node, counted from 0.
        second: usize,
    },
    /// An edge leads to an id that no node has.
    MissingReferent {
        /// The id of the node that the edge belongs to.
        node: NodeId,
        /// The position of that node among the nodes, from 0.
        node_position: usize,
        /// The position of the edge among the edges of that node, from 0.
        edge: usize,
        /// The id that no node has.
        referent: NodeId,
    },
    /// There are too many items for 32 bits. The text names the items.
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
