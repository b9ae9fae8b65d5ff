//! The types that the table passes by pointer. Each layout is fixed for this version of the table.

use core::ffi::c_void;
use core::marker::PhantomData;

/// The sizes of an engine's own tables, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sizes {
    /// The bytes used for stacks.
    pub traces_used: u64,
    /// The bytes reserved for later stacks.
    pub traces_unused: u64,
    /// The bytes of the index of stacks.
    pub trace_table: u64,
    /// The bytes for live blocks.
    pub live_blocks: u64,
    /// The bytes for freed blocks.
    pub dead_blocks: u64,
    /// The bytes for the reporters of each block.
    pub marks: u64,
    /// The bytes for the data of each thread.
    pub threads: u64,
}

/// The heap memory that one function of a module allocated, and that either no reporter or several reporters
/// reported.
#[repr(C)]
#[derive(Debug)]
pub struct DarkRow<'a> {
    module: ForeignText<'a>,
    function: ForeignText<'a>,
    /// For blocks that were reported twice: their reporters. For unreported blocks: their type; empty if it is unknown.
    detail: ForeignText<'a>,
    bytes: i64,
    twice: bool,
    estimated: bool,
}

impl<'a> DarkRow<'a> {
    /// Unreported blocks that a function of a module allocated. `bytes` is their sum.
    pub fn new(module: &'a str, function: &'a str, bytes: i64) -> Self {
        let [module, function, detail] = [module, function, ""].map(ForeignText::new);
        Self { module, function, detail, bytes, twice: false, estimated: false }
    }

    /// Sets the type of unreported blocks.
    #[must_use]
    pub fn with_type(mut self, name: &'a str) -> Self {
        (self.twice, self.detail) = (false, ForeignText::new(name));
        self
    }

    /// Marks the blocks as reported twice, by these reporters.
    #[must_use]
    pub fn twice(mut self, reporters: &'a str) -> Self {
        (self.twice, self.detail) = (true, ForeignText::new(reporters));
        self
    }

    /// Sets whether the bytes are an estimate.
    #[must_use]
    pub fn estimated(mut self, estimated: bool) -> Self {
        self.estimated = estimated;
        self
    }

    pub(super) fn read(&self) -> DarkMatterRow {
        DarkMatterRow {
            module: self.module.read(),
            function: self.function.read(),
            detail: self.detail.read(),
            bytes: self.bytes,
            twice: self.twice,
            estimated: self.estimated,
        }
    }
}

/// A text that another library owns.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ForeignText<'a> {
    start: *const u8,
    len: usize,
    text: PhantomData<&'a str>,
}

impl<'a> ForeignText<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { start: text.as_ptr(), len: text.len(), text: PhantomData }
    }

    #[allow(unsafe_code, reason = "reads memory of another library")]
    pub(super) fn read(&self) -> String {
        // SAFETY: `new` stored the pointer and the length of a text that outlives `self`.
        let bytes = unsafe { core::slice::from_raw_parts(self.start, self.len) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// A copy of a [`DarkRow`] in this crate's own memory.
#[derive(Debug)]
pub(crate) struct DarkMatterRow {
    pub(crate) module: String,
    pub(crate) function: String,
    /// For blocks that were reported twice: their reporters. For unreported blocks: their type; empty if it is unknown.
    pub(crate) detail: String,
    pub(crate) bytes: i64,
    pub(crate) twice: bool,
    pub(crate) estimated: bool,
}

/// Receives one row. Unsafe to call: `context` must be the pointer that was passed together with this function, to a
/// call that has not returned yet.
pub type EachRow = unsafe extern "C" fn(context: *mut c_void, row: &DarkRow<'_>);

/// Whether a collection has received its rows.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOutcome {
    /// The engine passed no rows: it cannot make them, or these reports are for a dump.
    None,
    /// The engine has passed all rows.
    Told,
    /// Other reporters ran or a dump was written at the same time, or the reports were cleared.
    Lost,
}
