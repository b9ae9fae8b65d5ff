//! The stacks that allocated the blocks of this program.

use core::ffi::c_void;

use super::rows::ForeignText;
use super::{EngineTable, engine};

/// Receives one frame. Unsafe to call: `context` must be the pointer that was passed together with this function, to
/// a call that has not returned yet.
pub type EachFrame = unsafe extern "C" fn(context: *mut c_void, frame: &FrameRow<'_>);

/// A frame of a stack. Unknown texts are empty, and unknown numbers are 0.
#[repr(C)]
#[derive(Debug)]
pub struct FrameRow<'a> {
    function: ForeignText<'a>,
    file: ForeignText<'a>,
    module: ForeignText<'a>,
    /// The offset in the module; if the file is known, the column.
    offset: u64,
    line: u32,
}

impl<'a> FrameRow<'a> {
    /// A call from a function in a source file.
    pub fn in_file(function: &'a str, file: &'a str, line: u32) -> Self {
        Self {
            function: ForeignText::new(function),
            file: ForeignText::new(file),
            module: ForeignText::new(""),
            offset: 0,
            line,
        }
    }

    /// Sets the column of a call in a source file, from 1.
    #[must_use]
    pub fn at_column(mut self, column: u32) -> Self {
        self.offset = column.into();
        self
    }

    /// A call from a function at an offset in a program or library.
    pub fn in_module(function: &'a str, module: &'a str, offset: u64) -> Self {
        Self {
            function: ForeignText::new(function),
            file: ForeignText::new(""),
            module: ForeignText::new(module),
            offset,
            line: 0,
        }
    }

    fn read(&self) -> SiteFrame {
        let (source, column) = match (self.file.read(), self.module.read()) {
            (file, _) if !file.is_empty() => (file, u32::try_from(self.offset).unwrap_or_default()),
            (_, module) if !module.is_empty() => (format!("{module} +0x{:x}", self.offset), 0),
            _ => (UNKNOWN.to_owned(), 0),
        };
        SiteFrame {
            function: Some(self.function.read()).filter(|function| !function.is_empty()),
            is_system: source.starts_with("/rustc/"),
            source,
            line: self.line,
            column,
        }
    }
}

/// The text for an unknown place.
const UNKNOWN: &str = "???";

/// A frame of an allocation site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a profiler fills it in, field by field")]
pub struct SiteFrame {
    /// The name of the function; `None` if it is unknown.
    pub function: Option<String>,
    /// The source file, or another description of the place, such as an address.
    pub source: String,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// Whether the frame belongs to the system, not to the program.
    pub is_system: bool,
}

/// The number of the stack that allocated the block at this address; `None` if no engine has the block and its stack.
pub fn allocation_site(address: usize) -> Option<u64> {
    let site = (engine()?.site)(core::ptr::without_provenance(address));
    (site != 0).then_some(site)
}

/// The frames of a stack, the innermost first; empty for an unknown number. The first call reads symbols from the
/// program's files.
pub fn allocation_frames(site: u64) -> Vec<SiteFrame> {
    frames(site, |engine| engine.site_frames)
}

/// Like [`allocation_frames`], but with modules and offsets only, and without reading files.
pub(crate) fn allocation_places(site: u64) -> Vec<SiteFrame> {
    frames(site, |engine| engine.site_places)
}

type SiteFrames = unsafe extern "C" fn(site: u64, context: *mut c_void, each: EachFrame);

#[allow(unsafe_code, reason = "calls a function of another library")]
fn frames(site: u64, of: impl FnOnce(&EngineTable) -> SiteFrames) -> Vec<SiteFrame> {
    unsafe extern "C" fn add(context: *mut c_void, frame: &FrameRow<'_>) {
        // SAFETY: the maker of the table guarantees that the engine passes the context unchanged. The context points to
        // the list `frames`, and no other code uses this list until the engine's function returns.
        let frames = unsafe { &mut *context.cast::<Vec<SiteFrame>>() };
        frames.push(frame.read());
    }
    let mut frames = Vec::new();
    if let Some(engine) = engine() {
        // SAFETY: `add` expects a pointer to this list, and the list outlives the call.
        unsafe { of(engine)(site, (&raw mut frames).cast(), add) };
    }
    frames
}
