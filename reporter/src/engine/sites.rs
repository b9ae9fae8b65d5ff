//! The stacks that allocated the blocks of this program.

use core::ffi::c_void;

use super::{Text, engine};

/// Returns the number of the stack that allocated the block which starts at this address; 0 if the engine knows no
/// such block or no stack of it.
pub type Site = extern "C" fn(address: *const c_void) -> u64;

/// Calls `each` with the frames of a stack, the youngest first; not at all if there is no such stack. Unsafe to
/// call: `context` must be the one that `each` takes.
pub type SiteFrames = unsafe extern "C" fn(site: u64, context: *mut c_void, each: EachFrame);

/// Takes one frame. Unsafe to call: `context` must be the one that was passed with the function, to a call that has
/// not returned yet.
pub type EachFrame = unsafe extern "C" fn(context: *mut c_void, frame: &SiteFrame<'_>);

/// A frame of a stack.
#[repr(C)]
#[derive(Debug)]
pub struct SiteFrame<'a> {
    function: Text<'a>,
    place: Text<'a>,
    line: u32,
}

impl<'a> SiteFrame<'a> {
    /// A call from a function (empty if unknown) in a source file or, if that is unknown, at an offset in a program or
    /// library. The line is 0 if unknown.
    pub fn new(function: &'a str, place: &'a str, line: u32) -> Self {
        Self { function: Text::new(function), place: Text::new(place), line }
    }
}

/// A frame of an allocation site, read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationFrame {
    /// The function; empty if unknown.
    pub function: String,
    /// The source file, or the program or library and the offset in it.
    pub place: String,
    /// 0 if unknown.
    pub line: u32,
}

/// The number of the stack that allocated the block which starts here; `None` if no engine recorded it.
pub fn allocation_site(address: usize) -> Option<u64> {
    let site = (engine()?.site)(core::ptr::without_provenance(address));
    (site != 0).then_some(site)
}

/// The frames of a stack, the youngest first; none if there is no such stack. The first time, symbols are read
/// from the files of the program.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub fn allocation_frames(site: u64) -> Vec<AllocationFrame> {
    unsafe extern "C" fn add(context: *mut c_void, frame: &SiteFrame<'_>) {
        // SAFETY: `Engine::new` guarantees that the engine passes on the context, which is the list below; nothing else
        // uses that list until `site_frames` returns.
        let frames = unsafe { &mut *context.cast::<Vec<AllocationFrame>>() };
        let SiteFrame { function, place, line } = frame;
        frames.push(AllocationFrame { function: function.read(), place: place.read(), line: *line });
    }
    let mut frames = Vec::new();
    if let Some(engine) = engine() {
        // SAFETY: `add` takes a pointer to this list, which outlives the call.
        unsafe { (engine.site_frames)(site, (&raw mut frames).cast(), add) };
    }
    frames
}
