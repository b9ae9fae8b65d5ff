//! `url`: at least; counts the text of a `Url`, since its capacity is not accessible.

use core::alloc::Layout;

use url::{Host, Url};

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

impl MallocSizeOf for Url {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        ops.enclosing(self.as_str(), Layout::for_value(self.as_str()))
    }
}

impl<S: MallocSizeOf> MallocSizeOf for Host<S> {
    const NEEDS_WALK: bool = S::NEEDS_WALK;

    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        match self {
            Self::Domain(domain) => domain.size_of_excluding_this(ops),
            Self::Ipv4(_) | Self::Ipv6(_) => 0,
        }
    }
}
