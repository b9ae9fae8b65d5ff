//! The loader's data about the module that contains a pc.

use core::ffi::CStr;

use crate::module::{UnwindModule, link_map};

/// A hash that distinguishes a module without a build id from other modules with the same path.
pub type ModuleSample = [u8; 16];

/// A loaded module. It stays loaded while one of its frames is on this thread's stack.
#[derive(Clone, Copy, Debug)]
pub struct LoadedLibrary {
    /// The first address of the module.
    pub start: usize,
    /// The first address after the module.
    pub end: usize,
    /// The address in the process minus the address in the file.
    pub bias: usize,
    /// The path in the loader's record.
    pub path: &'static CStr,
    /// The build id; empty if the module has no build id or is permanent.
    pub build_id: &'static [u8],
    /// The sample of the contents; zeroes if the module has a build id or is permanent.
    pub sample: ModuleSample,
    /// Whether the module cannot be unloaded.
    pub is_permanent: bool,
}

/// The module that contains a pc of this thread's stack; `None` if no module contains the pc, or if this system has no
/// way to find the module without a lock. Takes no lock.
pub fn loaded(pc: usize) -> Option<LoadedLibrary> {
    let (module, bias, path) = link_map(pc)?;
    let is_permanent = module.is_permanent();
    let build_id = if is_permanent { None } else { module.whole_build_id() };
    let sample = if is_permanent || build_id.is_some() { None } else { module.sample() };
    Some(LoadedLibrary {
        start: module.start,
        end: module.end,
        bias,
        path,
        build_id: build_id.unwrap_or_default(),
        sample: sample.unwrap_or_default(),
        is_permanent,
    })
}

/// Whether `that` is still the module that contains a pc of this thread's stack.
pub fn is_loaded(pc: usize, that: &LoadedLibrary) -> bool {
    link_map(pc).is_some_and(|(module, _, name)| {
        let UnwindModule { start, end, .. } = module;
        (start, end) == (that.start, that.end)
            && name == that.path
            && match module.whole_build_id() {
                Some(build_id) => build_id == that.build_id,
                None => that.build_id.is_empty() && module.sample().unwrap_or_default() == that.sample,
            }
    })
}

/// The sample of the module at an address. The module must not be unloaded during the call.
pub fn sample_at(address: usize) -> ModuleSample {
    link_map(address).and_then(|(module, ..)| module.sample()).unwrap_or_default()
}
