//! The sizes of the process on an unsupported system: all are `None`.

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
