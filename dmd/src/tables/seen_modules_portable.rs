//! Libraries that were on a stack. The portable engine does not record them. So in a dump, frames of an unloaded
//! library have no module.

use core::ffi::CStr;

use crate::system::lock::Lock;
use crate::tables::trace_id::TraceId;

/// A sample of the contents of a module without a build id.
pub(crate) type ModuleSample = [u8; 0];

/// Returns no sample: samples are only for modules that were unloaded.
pub(crate) fn sample_at(_start: usize) -> ModuleSample {
    []
}

/// A library as it was loaded at one time.
#[derive(Debug)]
pub(crate) struct LoadedLibrary {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) bias: usize,
    pub(crate) path: &'static CStr,
    pub(crate) build_id: &'static [u8],
    pub(crate) sample: ModuleSample,
}

/// A library that was recorded.
#[derive(Debug)]
pub(crate) struct SeenModule {
    pub(crate) module: LoadedLibrary,
    /// The first node of the tree whose address is in the library.
    pub(crate) since: TraceId,
}

impl SeenModule {
    pub(crate) fn holds(&self, pc: usize) -> bool {
        (self.module.start..self.module.end).contains(&pc)
    }
}

/// Does nothing: the portable engine has no locks here.
pub(crate) fn for_each_lock(_each: &mut dyn FnMut(&Lock)) {}

/// Returns no libraries.
pub(crate) fn iter() -> impl Iterator<Item = &'static SeenModule> {
    core::iter::empty()
}

/// Returns 0: the portable engine records no library.
#[cfg(target_os = "linux")]
pub(crate) fn noted() -> u64 {
    0
}

/// Does nothing: the portable engine records no library.
pub(crate) fn note(_return_address: usize, _node: TraceId) {}
