//! The order of the rows that a front end shows. The order is kept because the front end requests window after window,
//! and sorting millions of nodes takes seconds. Only the latest order is kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heap_graph::NodeIndex;

use super::column::RowSort;
use super::compute::TaskKey;
use super::id::SnapshotId;

#[derive(Debug)]
struct SortedNodes {
    of: TaskKey,
    sort: RowSort,
    nodes: Arc<Vec<NodeIndex>>,
}

/// The latest order.
#[derive(Debug, Default)]
pub(super) struct NodeOrders(Mutex<Option<SortedNodes>>);

impl NodeOrders {
    fn latest(&self) -> MutexGuard<'_, Option<SortedNodes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the nodes of an answer in this order. `make` sorts the nodes if this is not the stored order.
    pub(super) fn get(
        &self,
        of: &TaskKey,
        sort: RowSort,
        make: impl FnOnce() -> Vec<NodeIndex>,
    ) -> Arc<Vec<NodeIndex>> {
        if let Some(order) = &*self.latest()
            && (&order.of, order.sort) == (of, sort)
        {
            return Arc::clone(&order.nodes);
        }
        let nodes = Arc::new(make());
        *self.latest() = Some(SortedNodes { of: of.clone(), sort, nodes: Arc::clone(&nodes) });
        nodes
    }

    /// Drops the order if it belongs to this snapshot.
    pub(super) fn forget(&self, snapshot: SnapshotId) {
        self.latest().take_if(|order| order.of.is_about(snapshot));
    }
}
