//! The options of a live graph.

use core::fmt;

use memory_reporter::engine_abi;

use super::dmd_sites::{DmdSites, NoSites};
use super::naming::{BlockTypes, coarse_type};
use super::sites::AllocationSites;
use crate::graph::CoarseType;

/// The options for building a live graph.
#[derive(Clone, Copy)]
pub struct LiveGraphOptions<'a> {
    pub(crate) coarse_type: fn(&BlockTypes<'_>) -> CoarseType,
    pub(crate) allocation_sites: Option<&'a dyn AllocationSites>,
}

impl fmt::Debug for LiveGraphOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveGraphOptions").finish_non_exhaustive()
    }
}

impl Default for LiveGraphOptions<'_> {
    fn default() -> Self {
        Self { coarse_type, allocation_sites: None }
    }
}

impl<'a> LiveGraphOptions<'a> {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the function that returns the coarse type of a block. Default: [`coarse_type`]. A program's own function
    /// can call the default function for blocks that it does not recognize.
    pub fn coarse_type(mut self, coarse_type: fn(&BlockTypes<'_>) -> CoarseType) -> Self {
        self.coarse_type = coarse_type;
        self
    }

    /// Sets the source of allocation sites. By default, DMD is the source if it records this process.
    pub fn allocation_sites(mut self, sites: &'a dyn AllocationSites) -> Self {
        self.allocation_sites = Some(sites);
        self
    }

    /// Leaves out allocation sites, even if DMD records them.
    pub fn without_allocation_sites(self) -> Self {
        self.allocation_sites(&NoSites)
    }

    pub(super) fn sites(&self) -> Option<&'a dyn AllocationSites> {
        let dmd = || engine_abi::is_connected().then_some(&DmdSites as &dyn AllocationSites);
        self.allocation_sites.or_else(dmd)
    }
}
