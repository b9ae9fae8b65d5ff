//! Where blocks were allocated, as a heap profiler knows it.

/// A heap profiler's knowledge of allocation sites, which a live graph adds to its nodes.
pub trait AllocationSites {
    /// The number of the site that allocated the block around this address; `None` if the profiler does not know it.
    ///
    /// Blocks with equal stacks have one number, so that the graph makes each stack once.
    fn site(&self, address: usize) -> Option<u64>;

    /// The frames of a site, the youngest first.
    fn frames(&self, site: u64) -> Vec<SiteFrame>;
}

/// A frame of an allocation site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a profiler fills it in, field by field")]
pub struct SiteFrame {
    /// The function; `None` if it is unknown.
    pub function: Option<String>,
    /// The source file, or another description of the place, such as an address.
    pub source: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    /// Whether the frame belongs to the system and not to the program.
    pub is_system: bool,
}
