//! The sizes of the process on a system that this crate cannot ask: none is known.

use super::{PageFaults, Statm};

pub(crate) fn statm() -> Option<Statm> {
    None
}

pub(crate) fn resident_peak() -> Option<u64> {
    None
}

pub(crate) fn page_faults() -> Option<PageFaults> {
    None
}
