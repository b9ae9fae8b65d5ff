//! `petgraph`: `Graph` exact, `StableGraph` computed. A `GraphMap` counts the tables of nodes and edges, but not the
//! lists of neighbors. `MatrixGraph` and `Csr` are opaque.

use core::alloc::Layout;
use core::hash::BuildHasher;

use memory_report::SkipReason;
use petgraph::EdgeType;
use petgraph::csr::Csr;
use petgraph::graph::{self, Edge, Graph, IndexType, Node};
use petgraph::graphmap::{GraphMap, NodeTrait};
use petgraph::matrix_graph::{MatrixGraph, Nullable};
use petgraph::stable_graph::StableGraph;

use crate::measure::impls::opaque::opaque;
use crate::measure::impls::plain::plain;
use crate::measure::layout::index_map;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::{MallocSizeOfOps, total};
use crate::measure::reading::Reading;

plain!([Ix] graph::NodeIndex<Ix>, [Ix] graph::EdgeIndex<Ix>);
opaque!(
    [N, E, Ty, Ix] Csr<N, E, Ty, Ix>,
    [N, E, S, Ty, Null: Nullable<Wrapped = E>, Ix] MatrixGraph<N, E, S, Ty, Null, Ix>,
);

fn array<T>(capacity: usize) -> Layout {
    // A live array of this capacity has this layout, so the layout is valid.
    Layout::array::<T>(capacity).unwrap_or(Layout::new::<()>())
}

impl<N: MallocSizeOf, E: MallocSizeOf, Ty: EdgeType, Ix: IndexType> MallocSizeOf for Graph<N, E, Ty, Ix> {
    #[allow(unsafe_code, reason = "passes the starts of the graph's blocks to `ops.block`")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let (nodes, edges) = self.capacity();
        // SAFETY: the nodes are the `Vec` that `into_nodes_edges` returns. They start the `Vec`'s block, which was
        // allocated for this capacity.
        let mut sum = unsafe { ops.block(self.raw_nodes().as_ptr(), array::<Node<N, Ix>>(nodes)) };
        if N::NEEDS_WALK || ops.wants_names() {
            sum += ops.contents(|ops| total(self.node_weights().map(|weight| ops.element(weight))));
        }
        // SAFETY: the edges are the other `Vec` that `into_nodes_edges` returns. They start the `Vec`'s block, which
        // was allocated for this capacity.
        sum += unsafe { ops.block(self.raw_edges().as_ptr(), array::<Edge<E, Ix>>(edges)) };
        if E::NEEDS_WALK || ops.wants_names() {
            sum += ops.contents(|ops| total(self.edge_weights().map(|weight| ops.element(weight))));
        }
        sum
    }
}

impl<N: MallocSizeOf, E: MallocSizeOf, Ty: EdgeType, Ix: IndexType> MallocSizeOf
    for StableGraph<N, E, Ty, Ix>
{
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let (nodes, edges) = self.capacity();
        let inside = self.node_weights().next().map_or(core::ptr::null(), |weight| &raw const *weight);
        let mut sum = ops.enclosing(inside, array::<Node<Option<N>, Ix>>(nodes));
        if N::NEEDS_WALK || ops.wants_names() {
            sum += ops.contents(|ops| total(self.node_weights().map(|weight| ops.element(weight))));
        }
        let inside = self.edge_weights().next().map_or(core::ptr::null(), |weight| &raw const *weight);
        sum += ops.enclosing(inside, array::<Edge<Option<E>, Ix>>(edges));
        if E::NEEDS_WALK || ops.wants_names() {
            sum += ops.contents(|ops| total(self.edge_weights().map(|weight| ops.element(weight))));
        }
        sum
    }
}

impl<N, E, Ty, S> MallocSizeOf for GraphMap<N, E, Ty, S>
where
    N: NodeTrait + MallocSizeOf,
    E: MallocSizeOf,
    Ty: EdgeType,
    S: BuildHasher,
{
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let (nodes, edges) = self.capacity();
        let mut sum = index_map::blocks::<N, Vec<(N, bool)>, _, R>(nodes, core::ptr::null::<N>(), ops);
        let weight = self.all_edges().next().map_or(core::ptr::null(), |(_, _, weight)| &raw const *weight);
        sum += index_map::blocks::<(N, N), E, _, R>(edges, weight, ops);
        if self.edge_count() != 0 {
            sum += ops.skip::<Vec<(N, bool)>>(SkipReason::Opaque);
        }
        if E::NEEDS_WALK || ops.wants_names() {
            sum += ops.contents(|ops| total(self.all_edges().map(|(_, _, weight)| ops.value(weight))));
        }
        sum
    }
}
