//! A dominator tree that shares the ownership of its graph, for front ends that keep both.

use std::sync::Arc;

use super::{DominatorTree, TreeArrays};
use crate::graph::Graph;
use crate::progress::{AnalysisProgress, CancelledError};

/// A dominator tree that keeps its graph alive. Clones share the graph and the tree.
///
/// ```
/// use std::sync::Arc;
///
/// use heap_graph::dominators::SharedDominators;
/// use heap_graph::{GraphBuilder, NodeId, NodeIndex, NodeParts, AnalysisProgress};
///
/// let mut builder = GraphBuilder::new();
/// let name = builder.text("Root").unwrap();
/// builder.node(NodeParts::new(NodeId(8), 24, name)).unwrap();
/// let graph = Arc::new(builder.finish().unwrap());
///
/// let tree = SharedDominators::watched(graph, &AnalysisProgress::new()).unwrap();
/// assert_eq!(tree.tree().retained_size(NodeIndex::ROOT), Some(24));
/// ```
#[derive(Clone, Debug)]
pub struct SharedDominators {
    graph: Arc<Graph>,
    arrays: Arc<TreeArrays>,
}

impl SharedDominators {
    /// Computes the tree with an [`AnalysisProgress`], which shows the progress and can cancel the computation.
    ///
    /// # Errors
    ///
    /// Returns a [`CancelledError`] if the computation was cancelled.
    pub fn watched(graph: Arc<Graph>, progress: &AnalysisProgress) -> Result<Self, CancelledError> {
        let arrays = DominatorTree::watched(&graph, progress)?.into_arrays();
        Ok(Self { graph, arrays })
    }

    /// The tree.
    pub fn tree(&self) -> DominatorTree<'_> {
        DominatorTree::from_arrays(&self.graph, Arc::clone(&self.arrays))
    }

    /// The graph of the tree.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }
}
