//! Allocation stacks from DMD, if DMD records this process.

use memory_reporter::engine_abi;

use super::sites::{AllocationSites, SiteFrame};

pub(super) struct DmdSites;

impl AllocationSites for DmdSites {
    fn site(&self, address: usize) -> Option<u64> {
        engine_abi::allocation_site(address)
    }

    fn frames(&self, site: u64) -> Vec<SiteFrame> {
        engine_abi::allocation_frames(site)
    }
}

/// Knows no allocation site of any block.
pub(super) struct NoSites;

impl AllocationSites for NoSites {
    fn site(&self, _: usize) -> Option<u64> {
        None
    }

    fn frames(&self, _: u64) -> Vec<SiteFrame> {
        Vec::new()
    }
}
