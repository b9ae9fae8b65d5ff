//! What the loader calls the module of a pc.

use core::ffi::CStr;

use crate::module::{Module, link_map};

/// What tells a module without a build id from others of its path.
pub type Sample = [u8; 16];

/// A module that is loaded, and stays so while a frame of it is on this thread's stack.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// Its first address.
    pub start: usize,
    /// The address behind its last.
    pub end: usize,
    /// What is added to addresses in the file.
    pub bias: usize,
    /// As the loader has it.
    pub path: &'static CStr,
    /// Empty if it has none.
    pub build_id: &'static [u8],
    /// Of one without a build id; else 0.
    pub sample: Sample,
    /// Whether it cannot be unloaded.
    pub is_permanent: bool,
}

/// The module that holds a pc of this thread's stack. Takes no lock; `None` also if that cannot be done here.
pub fn loaded(pc: usize) -> Option<Loaded> {
    let (module, bias, path) = link_map(pc)?;
    let is_permanent = module.is_permanent();
    let build_id = if is_permanent { None } else { module.whole_build_id() };
    let sample = if is_permanent || build_id.is_some() { None } else { module.sample() };
    Some(Loaded {
        start: module.start,
        end: module.end,
        bias,
        path,
        build_id: build_id.unwrap_or_default(),
        sample: sample.unwrap_or_default(),
        is_permanent,
    })
}

/// Whether the module of a pc of this thread's stack is this one.
pub fn is_loaded(pc: usize, that: &Loaded) -> bool {
    link_map(pc).is_some_and(|(module, _, name)| {
        let Module { start, end, .. } = module;
        (start, end) == (that.start, that.end)
            && name == that.path
            && match module.whole_build_id() {
                Some(build_id) => build_id == that.build_id,
                None => that.build_id.is_empty() && module.sample().unwrap_or_default() == that.sample,
            }
    })
}

/// The sample of a module that lies at an address and cannot be unloaded meanwhile.
pub fn sample_at(address: usize) -> Sample {
    link_map(address).and_then(|(module, ..)| module.sample()).unwrap_or_default()
}
