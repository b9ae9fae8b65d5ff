//! Where blocks were allocated, as a heap profiler knows it.

pub use memory_reporter::engine_abi::SiteFrame;

/// The allocation sites of a heap profiler, for the nodes of a live graph.
pub trait AllocationSites {
    /// The number of the site that allocated the block around this address; `None` if the profiler does not know it.
    ///
    /// Blocks with equal stacks have one number, so that the graph makes each stack once.
    fn site(&self, address: usize) -> Option<u64>;

    /// The frames of a site, the youngest first.
    fn frames(&self, site: u64) -> Vec<SiteFrame>;
}
