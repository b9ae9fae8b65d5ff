//! The options of a live graph.

use core::fmt;

use memory_reporter::engine_abi;

use super::dmd::{Dmd, Nowhere};
use super::naming::{BlockTypes, coarse_type};
use super::sites::AllocationSites;
use crate::graph::CoarseType;

/// How to make a live graph.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct LiveOptions<'a> {
    /// Gives the coarse type of a block; [`coarse_type`] by default. A program's own function can call the default
    /// one for the blocks that it does not recognize.
    pub coarse_type: fn(&BlockTypes<'_>) -> CoarseType,
    /// Where blocks were allocated. With `None`, the default, the graph asks DMD if DMD records this process.
    pub allocation_sites: Option<&'a dyn AllocationSites>,
}

impl fmt::Debug for LiveOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveOptions").finish_non_exhaustive()
    }
}

impl Default for LiveOptions<'_> {
    fn default() -> Self {
        Self { coarse_type, allocation_sites: None }
    }
}

impl<'a> LiveOptions<'a> {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`coarse_type`](Self::coarse_type).
    pub fn coarse_type(mut self, coarse_type: fn(&BlockTypes<'_>) -> CoarseType) -> Self {
        self.coarse_type = coarse_type;
        self
    }

    /// Sets [`allocation_sites`](Self::allocation_sites).
    pub fn allocation_sites(mut self, sites: &'a dyn AllocationSites) -> Self {
        self.allocation_sites = Some(sites);
        self
    }

    /// Leaves allocation sites out, even if DMD knows them.
    pub fn without_allocation_sites(self) -> Self {
        self.allocation_sites(&Nowhere)
    }

    pub(super) fn sites(&self) -> Option<&'a dyn AllocationSites> {
        let dmd = || engine_abi::is_connected().then_some(&Dmd as &dyn AllocationSites);
        self.allocation_sites.or_else(dmd)
    }
}
