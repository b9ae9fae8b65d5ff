//! Allocation stacks from DMD, when it records this process.

use memory_reporter::bridge;

use super::sites::{AllocationSites, SiteFrame};

pub(super) struct Dmd;

impl AllocationSites for Dmd {
    fn site(&self, address: usize) -> Option<u64> {
        bridge::allocation_site(address)
    }

    fn frames(&self, site: u64) -> Vec<SiteFrame> {
        let frame = |frame: bridge::AllocationFrame| SiteFrame {
            function: Some(frame.function).filter(|function| !function.is_empty()),
            is_system: frame.place.starts_with("/rustc/"),
            source: frame.place,
            line: frame.line,
            column: 0,
        };
        bridge::allocation_frames(site).into_iter().map(frame).collect()
    }
}

/// Knows no block.
pub(super) struct Nowhere;

impl AllocationSites for Nowhere {
    fn site(&self, _: usize) -> Option<u64> {
        None
    }

    fn frames(&self, _: u64) -> Vec<SiteFrame> {
        Vec::new()
    }
}
