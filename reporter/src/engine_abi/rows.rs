//! The types that pass through the table by a pointer. Each layout is fixed for this version of the table.

use core::ffi::c_void;
use core::marker::PhantomData;

/// The bytes of an engine's own tables.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sizes {
    /// Stacks.
    pub traces_used: u64,
    /// Reserved for stacks, but still empty.
    pub traces_unused: u64,
    /// The index of the stacks.
    pub trace_table: u64,
    /// Live blocks.
    pub live_blocks: u64,
    /// Freed blocks.
    pub dead_blocks: u64,
    /// The reporters of each block.
    pub marks: u64,
    /// The data of each thread.
    pub threads: u64,
}

/// The heap memory that one function of a module allocated and that no reporter reported, or several did.
#[repr(C)]
#[derive(Debug)]
pub struct DarkRow<'a> {
    module: ForeignText<'a>,
    function: ForeignText<'a>,
    /// Of blocks reported twice, the reporters; of others the type, or nothing.
    detail: ForeignText<'a>,
    bytes: i64,
    twice: bool,
    estimated: bool,
}

impl<'a> DarkRow<'a> {
    /// Unreported blocks that a function of a module allocated, with the sum of their bytes.
    pub fn new(module: &'a str, function: &'a str, bytes: i64) -> Self {
        let [module, function, detail] = [module, function, ""].map(ForeignText::new);
        Self { module, function, detail, bytes, twice: false, estimated: false }
    }

    /// The type of unreported blocks.
    #[must_use]
    pub fn with_type(mut self, name: &'a str) -> Self {
        (self.twice, self.detail) = (false, ForeignText::new(name));
        self
    }

    /// The blocks were reported twice, by these reporters.
    #[must_use]
    pub fn twice(mut self, reporters: &'a str) -> Self {
        (self.twice, self.detail) = (true, ForeignText::new(reporters));
        self
    }

    /// Says whether the bytes are an estimate.
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
        // SAFETY: `new` took the pointer and the length from a text that outlives `self`.
        let bytes = unsafe { core::slice::from_raw_parts(self.start, self.len) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// A row, read.
#[derive(Debug)]
pub(crate) struct DarkMatterRow {
    pub(crate) module: String,
    pub(crate) function: String,
    /// Of blocks reported twice, the reporters; of others the type, or nothing.
    pub(crate) detail: String,
    pub(crate) bytes: i64,
    pub(crate) twice: bool,
    pub(crate) estimated: bool,
}

/// Takes one row. Unsafe to call: `context` must be the one that was passed with the function, to a call that has
/// not returned yet.
pub type EachRow = unsafe extern "C" fn(context: *mut c_void, row: &DarkRow<'_>);

/// Whether a collection has its rows.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOutcome {
    /// The engine passes on no rows: it cannot make them, or these reports are for a dump.
    None,
    /// The engine has passed on all of them.
    Told,
    /// Other reporters ran at the same time, or the reports were cleared.
    Lost,
}
