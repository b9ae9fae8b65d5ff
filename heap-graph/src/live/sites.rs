//! Allocation sites, as a heap profiler records them.

pub use memory_reporter::engine_abi::SiteFrame;

/// The allocation sites of a heap profiler, for the nodes of a live graph.
pub trait AllocationSites {
    /// The number of the site that allocated the block around this address; `None` if the profiler has no site for
    /// it.
    ///
    /// Blocks with equal stacks must have the same number, so that the graph builds each stack once.
    fn site(&self, address: usize) -> Option<u64>;

    /// The frames of a site, the innermost first.
    fn frames(&self, site: u64) -> Vec<SiteFrame>;
}
