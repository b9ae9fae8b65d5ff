//! The sizes of the process on a system that this crate cannot ask: none is known.

use super::{PageFaults, ProcessSizes};

pub(crate) fn statm() -> Option<ProcessSizes> {
    None
}

pub(crate) fn resident_peak() -> Option<u64> {
    None
}

pub(crate) fn page_faults() -> Option<PageFaults> {
    None
}
