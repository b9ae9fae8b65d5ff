//! What the loader calls the module of a pc.

use core::ffi::CStr;

use super::module::{Module, link_map};

/// A module that is loaded, and stays so while a frame of it is on this thread's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// What is added to addresses in the file.
    pub(crate) bias: usize,
    /// As the loader has it.
    pub(crate) path: &'static CStr,
    /// Empty if it has none.
    pub(crate) build_id: &'static [u8],
    /// Whether it cannot be unloaded.
    pub(crate) is_permanent: bool,
}

/// The module that holds a pc of this thread's stack. Takes no lock; `None` also if that cannot be done here.
pub(crate) fn loaded(pc: usize) -> Option<Loaded> {
    let (module, bias, path) = link_map(pc)?;
    let is_permanent = module.is_permanent();
    let build_id = if is_permanent { None } else { module.whole_build_id() };
    Some(Loaded {
        start: module.start,
        end: module.end,
        bias,
        path,
        build_id: build_id.unwrap_or_default(),
        is_permanent,
    })
}

/// Whether the module of a pc of this thread's stack still lies here, and has this path and build id.
pub(crate) fn same_as(pc: usize, start: usize, end: usize, path: &[u8], build_id: &[u8]) -> bool {
    link_map(pc).is_some_and(|(module, _, name)| {
        let Module { start: now, end: now_end, .. } = module;
        (now, now_end) == (start, end)
            && name.to_bytes() == path
            && module.whole_build_id().unwrap_or_default() == build_id
    })
}
