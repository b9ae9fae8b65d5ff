//! The tables that a program and an engine of DMD share. An engine knows every live block and who reported it.
//!
//! The crate `dmd` uses this module; programs do not. An engine is linked into the program, or preloaded as
//! `libdmd.so`: then this crate looks for its one C symbol, whose name contains the version, when the program starts.
//! Each side hands the other a `repr(C)` table of functions. While an engine is connected, measuring a value for a
//! report under `explicit/` marks its blocks.

mod sites;

pub use sites::{
    AllocationFrame, EachFrame, Site, SiteFrame, SiteFrames, allocation_frames, allocation_site,
};

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;
use std::io;

use crate::platform::{self, FoundSymbol};

/// The functions that an engine may call in a program.
#[repr(C)]
#[derive(Debug)]
pub struct Program {
    /// Bytes of this table; a later version may add entries at its end.
    size: usize,
    run_reporters: extern "C" fn(milliseconds: u64),
}

impl Program {
    /// A program whose reporters this function runs. It must not unwind.
    pub(crate) const fn new(run_reporters: extern "C" fn(milliseconds: u64)) -> Self {
        Self { size: size_of::<Self>(), run_reporters }
    }

    /// Runs all reporters of the program and drops their reports. With a deadline it gives up each reporter that
    /// takes longer, as [`CollectOptions::deadline`](crate::CollectOptions::deadline) says.
    pub fn run_reporters(&self, deadline: Option<Duration>) {
        let milliseconds = deadline.map_or(0, |deadline| deadline.as_millis().max(1));
        (self.run_reporters)(u64::try_from(milliseconds).unwrap_or(u64::MAX));
    }
}

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

/// An engine's number for the path of a report.
type PathNumber = u32;

const NO_PATH: PathNumber = PathNumber::MAX;

/// Marks a block for a path and returns its usable bytes; 0 if the engine knows no such block.
pub type Mark = extern "C" fn(address: *const c_void, path: PathNumber) -> usize;

/// The heap memory that one function of a module allocated and that no reporter reported, or several did.
#[repr(C)]
#[derive(Debug)]
pub struct DarkRow<'a> {
    module: Text<'a>,
    function: Text<'a>,
    reporters: Text<'a>,
    bytes: i64,
    twice: bool,
    estimated: bool,
}

impl<'a> DarkRow<'a> {
    /// Unreported blocks that a function of a module allocated, with the sum of their bytes.
    pub fn new(module: &'a str, function: &'a str, bytes: i64) -> Self {
        let [module, function, reporters] = [module, function, ""].map(Text::new);
        Self { module, function, reporters, bytes, twice: false, estimated: false }
    }

    /// The blocks were reported twice, by these reporters.
    #[must_use]
    pub fn twice(mut self, reporters: &'a str) -> Self {
        (self.twice, self.reporters) = (true, Text::new(reporters));
        self
    }

    /// Says whether the bytes are an estimate.
    #[must_use]
    pub fn estimated(mut self, estimated: bool) -> Self {
        self.estimated = estimated;
        self
    }

    fn read(&self) -> DarkMatter {
        DarkMatter {
            module: self.module.read(),
            function: self.function.read(),
            reporters: self.reporters.read(),
            bytes: self.bytes,
            twice: self.twice,
            estimated: self.estimated,
        }
    }
}

/// A text that another library owns.
#[repr(C)]
#[derive(Debug)]
struct Text<'a> {
    start: *const u8,
    len: usize,
    text: PhantomData<&'a str>,
}

impl<'a> Text<'a> {
    fn new(text: &'a str) -> Self {
        Self { start: text.as_ptr(), len: text.len(), text: PhantomData }
    }

    #[allow(unsafe_code, reason = "reads memory of another library")]
    fn read(&self) -> String {
        // SAFETY: `new` took the pointer and the length from a text that outlives `self`.
        let bytes = unsafe { core::slice::from_raw_parts(self.start, self.len) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// A row, read.
#[derive(Debug)]
pub(crate) struct DarkMatter {
    pub(crate) module: String,
    pub(crate) function: String,
    pub(crate) reporters: String,
    pub(crate) bytes: i64,
    pub(crate) twice: bool,
    pub(crate) estimated: bool,
}

/// Takes one row. Unsafe to call: `context` must be the one that was passed with the function, to a call that has
/// not returned yet.
pub type EachRow = unsafe extern "C" fn(context: *mut c_void, row: &DarkRow<'_>);

/// Begins a run of reporters, for a collection that wants rows or not; if it does, earlier reports do not count.
/// Returns a number for the run, or 0 if the engine marks no blocks.
pub type BeginCollection = extern "C" fn(rows: bool) -> u32;

/// From now on this thread runs reporters of that run; returns the number of the run before. 0 stands for none.
pub type EnterCollection = extern "C" fn(run: u32) -> u32;

/// Returns a number for one reporter of one collection, never 0.
pub type NewReporter = extern "C" fn() -> u32;

/// From now on the marks of this thread belong to that reporter; returns the reporter before. 0 stands for none.
pub type EnterReporter = extern "C" fn(reporter: u32) -> u32;

/// Removes the marks that a reporter has made for a path, or for all paths if that is `u32::MAX`; none if the
/// reporter is 0. Subtracts `claimed` from the bytes claimed at the path.
pub type Withdraw = extern "C" fn(reporter: u32, path: u32, claimed: u64);

/// Ends a collection that wants rows: calls `each` with every row. Unsafe to call: `context` must be the one that
/// `each` takes.
pub type EndCollection = unsafe extern "C" fn(run: u32, context: *mut c_void, each: EachRow) -> Rows;

/// Whether a collection has its rows.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// There are none: the engine cannot make them, or these reports are for a dump.
    None,
    /// The engine has passed on all of them.
    Told,
    /// Other reporters ran at the same time, or the reports were cleared.
    Lost,
}

/// The functions that a program may call in an engine. Except for the reporters that they run, they do not allocate
/// in the program's heap.
#[repr(C)]
pub struct Engine {
    /// Bytes of this table; a later version may add entries at its end.
    size: usize,
    path: unsafe extern "C" fn(text: *const u8, len: usize) -> PathNumber,
    mark: Mark,
    mark_on_alloc: Mark,
    mark_enclosing: Mark,
    claim: extern "C" fn(path: PathNumber, bytes: u64),
    sizes: unsafe extern "C" fn(sizes: *mut Sizes),
    report_and_dump: Dump,
    heap: Heap,
    begin: BeginCollection,
    enter: EnterCollection,
    end: EndCollection,
    site: Site,
    site_frames: SiteFrames,
    is_unreported: IsUnreported,
    new_reporter: NewReporter,
    enter_reporter: EnterReporter,
    withdraw: Withdraw,
}

/// Whether a live block starts at this address, or lies around it, that the run of this thread has not reported;
/// false if that run does not own the marks.
pub type IsUnreported = extern "C" fn(address: *const c_void) -> bool;

/// Returns the usable bytes of all live blocks if `probe` is one of them and the engine records all; otherwise 0.
pub type Heap = extern "C" fn(probe: *const c_void) -> u64;

/// Runs all reporters, with a deadline for each in milliseconds, and writes a dump to `path`, a C string. Returns 0,
/// the system's number of an error, or -1 if the engine records nothing.
pub type Dump = unsafe extern "C" fn(path: *const c_char, milliseconds: u64) -> c_int;

impl Engine {
    /// A table of these functions.
    ///
    /// # Safety
    ///
    /// Each function does what its entry and its type say, on any thread and until the process ends, and none
    /// unwinds. They compare the addresses that they get, and never read there. `path` reads a text of that length,
    /// `sizes` writes one `Sizes`, `report_and_dump` reads a C string. `end` and `site_frames` call `each` with the
    /// context that came with it, on the same thread and before they return. `site_frames` takes any number.
    #[allow(unsafe_code, reason = "safe functions of this module rely on the table")]
    #[allow(clippy::too_many_arguments, reason = "one for each entry of the table")]
    pub const unsafe fn new(
        path: unsafe extern "C" fn(text: *const u8, len: usize) -> PathNumber,
        mark: Mark,
        mark_on_alloc: Mark,
        mark_enclosing: Mark,
        claim: extern "C" fn(path: PathNumber, bytes: u64),
        sizes: unsafe extern "C" fn(sizes: *mut Sizes),
        report_and_dump: Dump,
        heap: Heap,
        begin: BeginCollection,
        enter: EnterCollection,
        end: EndCollection,
        site: Site,
        site_frames: SiteFrames,
        is_unreported: IsUnreported,
        new_reporter: NewReporter,
        enter_reporter: EnterReporter,
        withdraw: Withdraw,
    ) -> Self {
        let size = size_of::<Self>();
        Self {
            size,
            path,
            mark,
            mark_on_alloc,
            mark_enclosing,
            claim,
            sizes,
            report_and_dump,
            heap,
            begin,
            enter,
            end,
            site,
            site_frames,
            is_unreported,
            new_reporter,
            enter_reporter,
            withdraw,
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("size", &self.size).finish_non_exhaustive()
    }
}

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(null_mut());

/// Connects an engine until the process ends. It does not allocate. It is safe, since [`Engine::new`] obliges the
/// maker of the table to provide sound functions.
pub fn connect(engine: &'static Engine) {
    if engine.size >= size_of::<Engine>() {
        ENGINE.store(core::ptr::from_ref(engine).cast_mut(), Ordering::Release);
    }
}

/// Connects `program` with a preloaded engine, if there is one, when the program starts. Returns false if this copy
/// of the crate is the engine's own, with which no program reports.
#[allow(unsafe_code, reason = "calls a symbol of another library")]
pub(crate) fn find_preloaded(program: &'static Program) -> bool {
    let symbol = match platform::find_symbol(c"DMDConnect1") {
        FoundSymbol::Nowhere => return true,
        FoundSymbol::Here => return false,
        FoundSymbol::Elsewhere(symbol) => symbol,
    };
    // SAFETY: the name contains the version, and `libdmd.so` exports a function of exactly this type by it.
    let connect_program: unsafe extern "C" fn(*const Program) -> *const Engine =
        unsafe { core::mem::transmute(symbol) };
    // SAFETY: `program` is a static of this file, which is never unloaded after the call.
    let engine = unsafe { connect_program(program) };
    // SAFETY: `DMDConnect1` returns null or a table that stays until the process ends.
    if let Some(engine) = unsafe { engine.as_ref() } {
        connect(engine);
    }
    true
}

fn engine() -> Option<&'static Engine> {
    // SAFETY: the pointer is null, or `connect` stored a reference that is valid until the process ends.
    #[allow(unsafe_code, reason = "a table of another library")]
    unsafe {
        ENGINE.load(Ordering::Acquire).as_ref()
    }
}

/// Marks blocks for one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    engine: &'static Engine,
    path: PathNumber,
}

#[allow(unsafe_code, reason = "calls functions of another library")]
impl Marks {
    /// `None` if no engine is connected.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let engine = engine()?;
        // SAFETY: `Engine::new` guarantees that `path` only reads a text of this length.
        let path = unsafe { (engine.path)(path.as_ptr(), path.len()) };
        Some(Self { engine, path })
    }

    /// The usable bytes of the block that starts here.
    pub(crate) fn block(self, start: *const u8) -> Option<usize> {
        let bytes = (self.engine.mark)(start.cast(), self.path);
        (bytes != 0).then_some(bytes)
    }

    /// The usable bytes of the block that has this address inside.
    pub(crate) fn enclosing(self, inside: *const u8) -> Option<usize> {
        let bytes = (self.engine.mark_enclosing)(inside.cast(), self.path);
        (bytes != 0).then_some(bytes)
    }

    /// Whether a live block is here that nobody has reported in this collection; false if that is unknown.
    pub(crate) fn is_unreported(self, inside: *const u8) -> bool {
        (self.engine.is_unreported)(inside.cast())
    }

    /// Tells the engine how many bytes a report claims at the path.
    pub(crate) fn claim(self, bytes: i64) {
        (self.engine.claim)(self.path, u64::try_from(bytes).unwrap_or(0));
    }
}

/// Marks a block as reported for as long as it lives, by a counter.
pub(crate) fn mark_on_alloc(start: *const u8) {
    if let Some(engine) = engine() {
        (engine.mark_on_alloc)(start.cast(), NO_PATH);
    }
}

/// Sizes of the engine's own tables, if one is connected.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub(crate) fn engine_sizes() -> Option<Sizes> {
    let engine = engine()?;
    let mut sizes = Sizes::default();
    // SAFETY: `Engine::new` guarantees that the function writes one `Sizes`, for which `sizes` has room.
    unsafe { (engine.sizes)(&raw mut sizes) };
    Some(sizes)
}

/// Whether an engine is connected.
pub fn is_connected() -> bool {
    engine().is_some()
}

/// Usable bytes of all live blocks, if an engine records the blocks that Rust allocates: it must know a block that
/// this function allocates for the question.
pub(crate) fn heap() -> Option<u64> {
    let engine = engine()?;
    let probe = core::hint::black_box(Box::new(0_u64));
    let bytes = (engine.heap)((&raw const *probe).cast());
    (bytes != 0).then_some(bytes)
}

/// Lets the engine run all reporters, each with a deadline, and write a dump.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub(crate) fn report_and_dump(path: &CStr, deadline: Duration) -> io::Result<()> {
    let engine = engine().ok_or(io::ErrorKind::Unsupported)?;
    let milliseconds = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    // SAFETY: `Engine::new` guarantees that the function only reads a C string, which `path` is.
    match unsafe { (engine.report_and_dump)(path.as_ptr(), milliseconds) } {
        0 => Ok(()),
        number if number > 0 => Err(io::Error::from_raw_os_error(number)),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// A run of the reporters of one collection, whose reports an engine marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    engine: &'static Engine,
    number: u32,
}

impl Run {
    /// `None` without an engine that marks blocks.
    pub(crate) fn begin(rows: bool) -> Option<Self> {
        let engine = engine()?;
        let number = (engine.begin)(rows);
        (number != 0).then_some(Self { engine, number })
    }

    /// For another reporter of the run.
    pub(crate) fn marker(self) -> Marker {
        Marker { run: self, number: (self.engine.new_reporter)() }
    }
}

/// One reporter of a run, for which the engine marks blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marker {
    run: Run,
    number: u32,
}

impl Marker {
    /// Until the value is dropped, the marks of this thread belong to the reporter and its run.
    pub(crate) fn enter(self) -> Entered {
        let engine = self.run.engine;
        let before = ((engine.enter)(self.run.number), (engine.enter_reporter)(self.number));
        Entered { engine, before }
    }

    /// The collection leaves out the reporter's reports: removes its marks, and these claims.
    pub(crate) fn withdraw(self, claims: &[(Marks, i64)]) {
        let engine = self.run.engine;
        (engine.withdraw)(self.number, NO_PATH, 0);
        for (marks, bytes) in claims {
            (engine.withdraw)(0, marks.path, u64::try_from(*bytes).unwrap_or(0));
        }
    }

    /// The collection leaves out a report of the reporter: removes the marks for its path.
    pub(crate) fn withdraw_report(self, marks: Marks) {
        (self.run.engine.withdraw)(self.number, marks.path, 0);
    }
}

#[derive(Debug)]
pub(crate) struct Entered {
    engine: &'static Engine,
    /// The run and the reporter.
    before: (u32, u32),
}

impl Drop for Entered {
    fn drop(&mut self) {
        (self.engine.enter)(self.before.0);
        (self.engine.enter_reporter)(self.before.1);
    }
}

/// A collection that wants rows of unreported memory; its run must have begun with rows. It ends when dropped.
#[derive(Debug)]
pub(crate) struct Collecting(Option<Run>);

impl Collecting {
    pub(crate) fn new(run: Run) -> Self {
        Self(Some(run))
    }

    /// The memory that no reporter reported, and that several reported.
    #[allow(unsafe_code, reason = "calls a function of another library")]
    pub(crate) fn end(mut self) -> (Rows, Vec<DarkMatter>) {
        unsafe extern "C" fn add(context: *mut c_void, row: &DarkRow<'_>) {
            // SAFETY: `Engine::new` guarantees that the engine passes on the context, which is the list below; nothing
            // else uses that list until `end` returns.
            let rows = unsafe { &mut *context.cast::<Vec<DarkMatter>>() };
            rows.push(row.read());
        }
        let mut rows = Vec::new();
        let Some(run) = self.0.take() else { return (Rows::None, rows) };
        // SAFETY: `add` takes a pointer to this list, which outlives the call.
        let told = unsafe { (run.engine.end)(run.number, (&raw mut rows).cast(), add) };
        (told, rows)
    }
}

impl Drop for Collecting {
    #[allow(unsafe_code, reason = "calls a function of another library")]
    fn drop(&mut self) {
        extern "C" fn ignore(_: *mut c_void, _: &DarkRow<'_>) {}
        if let Some(run) = self.0.take() {
            // SAFETY: `ignore` ignores its context.
            unsafe { (run.engine.end)(run.number, null_mut(), ignore) };
        }
    }
}
