//! Combines two sources of memory of the same moment.

use dmd_analyze::image::StoppedThread;

use super::MemorySource;

/// Reads from a first source, and from a second source at addresses that the first source does not contain. For
/// example, a scan dump contains blocks, and a core file contains statics.
#[derive(Debug)]
pub struct LayeredMemory<'m> {
    first: &'m dyn MemorySource,
    second: &'m dyn MemorySource,
}

impl<'m> LayeredMemory<'m> {
    /// Reads from `first`, and otherwise from `second`.
    pub fn new(first: &'m dyn MemorySource, second: &'m dyn MemorySource) -> Self {
        Self { first, second }
    }
}

impl MemorySource for LayeredMemory<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        match self.first.read(address, into) {
            0 => self.second.read(address, into),
            filled => filled,
        }
    }

    fn threads(&self) -> Vec<StoppedThread> {
        let mut threads = self.first.threads();
        threads.extend(self.second.threads());
        threads
    }

    fn end_of(&self, address: u64) -> Option<u64> {
        self.first.end_of(address).or_else(|| self.second.end_of(address))
    }
}
