//! The boundary between a program and an engine of DMD: one table of C functions, [`EngineTable`].
//!
//! An engine records live blocks and who reported them. It is linked into the program with the crate `dmd`, or it is
//! preloaded as `libdmd.so`. Both give the same table, in a static that stays until the process ends. The crates
//! `memory-reporter`, `dmd` and `heap-graph` use this module; programs do not.
//!
//! # Who calls what, on which thread
//!
//! - A program looks for a preloaded engine by the C symbol [`SYMBOL`] ([`preloaded`]). The engine cannot look for
//!   the program, since the symbols of an executable are not dynamic. `memory-reporter` looks once, on the first
//!   thread before `main`, and calls `add_program` if the engine records. The wrapper `dmd::Dmd` looks at the first
//!   allocation. If it finds no engine that records, it starts its own and connects it ([`connect`]).
//! - The wrapper calls the entries of hooks (`record` to `look_at_guard`) on every thread, in every allocation, also
//!   in signal handlers. These entries allocate nothing, take no global lock, and keep `errno`.
//! - Reporters mark blocks (`path` to `is_unreported`) on the thread that measures. A collection begins and ends on
//!   one thread; its reporters enter it on the threads that run them.
//! - `libdmd.so` has a copy of `memory-reporter`. If `ABOUT_MEMORY` asks for it, that copy answers for a program without
//!   one ([`connect_itself`]); it stops when a program calls `add_program`, which then answers itself.
//! - `dump` and `report_and_dump` write a file on the calling thread. `report_and_dump` calls `run_reporters` of
//!   every program on that thread; that is the only call from an engine into a program.
//! - All entries are for every thread, until the process ends, and none unwinds. Except for the reporters that they
//!   run, they do not allocate in the program's heap. A callback (`each`) runs on the calling thread before the entry
//!   returns.
//!
//! # Which versions understand each other
//!
//! The symbol's name ends in the number of the version. A version has a fixed meaning for every entry and a fixed
//! layout for every type here. A later release may only append entries, which [`EngineTable::size`] tells, and add flags that
//! an older engine may ignore. Any other change makes a new version with a new name.
//!
//! | the engine has | what the program does |
//! | --- | --- |
//! | the same entries, or more | uses those that it knows |
//! | fewer entries | leaves the engine alone, as if there were none |
//! | another version | does not find it: the name differs |
//!
//! In the last two cases `libdmd.so` records the blocks that pass through `malloc`, and reports of the program mark
//! none of them. If the program has the wrapper and `$DMD` is set, the engine in the program records too, says so on
//! stderr (for a table with fewer entries, which it sees), and has the reports. Each engine writes its own dump; if
//! the name of the dump does not contain `%p`, that of `libdmd.so` replaces the other. The tests
//! (`dmd/tests/suite/engine_versions.rs`) run programs under engines with fewer and more entries and another version.

mod marks;
mod observing;
#[cfg(feature = "live")]
mod requests;
mod rows;
mod run;
mod sites;

pub(crate) use marks::{
    BlockSizes, Marks, PointerAnswer, PointerFault, is_known, mark_on_alloc, records, records_program,
};
pub(crate) use observing::{AllocationLog, NoLog, ticks};
pub use observing::{
    BlockRow, EachBlock, EachName, EngineTypeName, LOG_OF_SAMPLE, LogLimits, LogState, enclosing_site,
    for_each_live_block, site_type,
};
#[cfg(feature = "live")]
pub(crate) use requests::{
    LiveCopy, dump, is_running, may_record, report_and_dump, set_session_peer, start_recording,
    start_tracking, stop_tracking, unrecorded,
};
pub(crate) use rows::DarkMatterRow;
pub use rows::{DarkRow, EachRow, RowsOutcome, Sizes};
pub(crate) use run::{DarkMatterCollection, MarkingRun, ReporterMarker};
pub(crate) use sites::allocation_places;
pub use sites::{EachFrame, FrameRow, SiteFrame, allocation_frames, allocation_site};

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::platform::{self, FoundSymbol};

/// The name of the C function of `libdmd.so` that returns its table: `extern "C" fn() -> *const EngineTable`.
pub const SYMBOL: &CStr = c"DMDEngine3";

/// An engine's number for the path of a report.
pub type PathNumber = u32;

/// Stands for no path, and in `withdraw` for all paths.
pub const NO_PATH: PathNumber = PathNumber::MAX;

/// Flag of `mark`: the block was marked at its allocation, so the mark stays until the program frees it.
pub const ON_ALLOC: u32 = 1;

/// Flag of `mark`: the address lies inside the block, or at its start.
pub const ENCLOSING: u32 = 2;

/// Flag of `mark`: the block is of an allocator that the engine records, as [`PROBE`] has shown. If no block is there,
/// the result is [`NOT_HEAP`], [`INTERIOR`] or [`FREED`].
pub const RECORDED: u32 = 4;

/// Flag of `mark`: the block may be of an allocator that the engine does not record, so an unknown pointer is no fault.
pub const FOREIGN: u32 = 8;

/// Flag of `mark`: marks nothing. The result is 1 if the engine has every live block and one starts at the address, or
/// else 0.
pub const PROBE: u32 = 16;

/// Result of `mark`: the pointer is in no block.
pub const NOT_HEAP: usize = usize::MAX;

/// Result of `mark`: the pointer is inside a block, but not at its start.
pub const INTERIOR: usize = usize::MAX - 1;

/// Result of `mark`: the pointer is to the start of a block that was freed.
pub const FREED: usize = usize::MAX - 2;

/// Stands for no descriptor in `set_session_peer`.
pub const NO_PEER: c_int = -1;

/// Runs all reporters of a program and drops their reports. Each reporter has `milliseconds` of time; 0 sets no deadline.
/// The function does not unwind.
pub type RunReporters = extern "C" fn(milliseconds: u64);

/// Runs code. Unsafe to call: `context` must be the one that was passed with the function, to a call that has not
/// returned yet.
pub type Body = unsafe extern "C" fn(context: *mut c_void);

/// Room for what an engine remembers of a block while its allocator moves it. Only the engine knows the contents.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct MoveRoom([MaybeUninit<u8>; 128]);

impl MoveRoom {
    /// Room without contents.
    pub const EMPTY: Self = Self([MaybeUninit::uninit(); 128]);
}

impl fmt::Debug for MoveRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MoveRoom").finish_non_exhaustive()
    }
}

/// A copy of the process, whose memory a reader from outside reads while the process goes on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an engine fills it in")]
pub struct CopyHandle {
    /// The number of the copy.
    pub process: c_int,
    /// The descriptor with which `end_copy` ends the copy.
    pub hold: c_int,
}

/// The functions of an engine. The addresses of blocks that it gets are only compared, never read.
#[repr(C)]
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "an engine fills it in, entry by entry")]
pub struct EngineTable {
    /// Bytes of this table.
    pub size: usize,
    /// Whether the engine records blocks.
    pub is_running: extern "C" fn() -> bool,
    /// Adds a program, whose reporters `report_and_dump` runs. The engine keeps the library with this function
    /// loaded.
    pub add_program: extern "C" fn(run_reporters: RunReporters),

    /// Hook: records a new block. The innermost frame of its stack is the caller.
    pub record: extern "C" fn(address: *mut c_void, requested: usize, usable: usize),
    /// Hook: forgets a block, before the allocator frees it.
    pub forget: extern "C" fn(address: *mut c_void),
    /// Hook: forgets a block, before the allocator moves it, and writes what it had of it to `room`.
    pub begin_move: unsafe extern "C" fn(address: *mut c_void, room: *mut MoveRoom),
    /// Hook: the allocator moved the block. `room` is as `begin_move` left it.
    pub commit_move: unsafe extern "C" fn(room: *const MoveRoom),
    /// Hook: the allocator did not move the block. `room` is as `begin_move` left it.
    pub roll_back_move: unsafe extern "C" fn(room: *const MoveRoom),
    /// Hook: this thread's guard, which stays where it is while the thread lives. It is a `u32`, not 0 while the
    /// thread is in the engine or in an allocator with a hook, and then, aligned, a `usize`: the stack pointer of
    /// the code that set it first, or 0. A hook adds 2^16 to the number around calls of its allocator, so that other
    /// hooks do not record parts of the same block.
    pub guard: extern "C" fn() -> *const c_void,
    /// Hook: clears the guard if a jump left the code that set it.
    pub look_at_guard: extern "C" fn(),

    /// Returns the number of a path, a text of this length.
    pub path: unsafe extern "C" fn(text: *const u8, len: usize) -> PathNumber,
    /// Marks a block for a path, as the flags [`ON_ALLOC`] to [`PROBE`] say, and returns its usable bytes; 0 if the engine
    /// knows no such block. An older engine ignores a flag that it does not know.
    pub mark: extern "C" fn(address: *const c_void, path: PathNumber, flags: u32) -> usize,
    /// Adds to the bytes that reports claim at a path.
    pub claim: extern "C" fn(path: PathNumber, bytes: u64),
    /// Removes the marks that a reporter has made for a path, or for all paths with [`NO_PATH`]; none if the reporter
    /// is 0. Subtracts `claimed` from the bytes claimed at the path.
    pub withdraw: extern "C" fn(reporter: u32, path: PathNumber, claimed: u64),
    /// Removes all marks except those made at allocation.
    pub clear_marks: extern "C" fn(),
    /// Whether a live block starts at this address, or lies around it, that the run of this thread has not reported;
    /// false if that run does not own the marks.
    pub is_unreported: extern "C" fn(address: *const c_void) -> bool,

    /// Begins a run of reporters, for a collection that wants rows or not; if it does, earlier reports do not count.
    /// Returns a number for the run, or 0 if the engine marks no blocks.
    pub begin: extern "C" fn(rows: bool) -> u32,
    /// From now on this thread runs reporters of that run; returns the number of the run before. 0 stands for none.
    pub enter: extern "C" fn(run: u32) -> u32,
    /// Returns a number for one reporter of one collection, never 0.
    pub new_reporter: extern "C" fn() -> u32,
    /// From now on the marks of this thread belong to that reporter; returns the reporter before. 0 stands for none.
    pub enter_reporter: extern "C" fn(reporter: u32) -> u32,
    /// Ends a collection that wants rows: calls `each` with every row and with `context`.
    pub end: unsafe extern "C" fn(run: u32, context: *mut c_void, each: EachRow) -> RowsOutcome,

    /// Writes the bytes of the engine's own tables to `sizes`.
    pub sizes: unsafe extern "C" fn(sizes: *mut Sizes),
    /// Returns the usable bytes of all live blocks if the engine records all, and `probe` is one of them or null;
    /// otherwise 0.
    pub heap: extern "C" fn(probe: *const c_void) -> u64,
    /// Returns the number of the stack that allocated the block which starts at this address; 0 if the engine knows
    /// no such block or no stack of it.
    pub site: extern "C" fn(address: *const c_void) -> u64,
    /// Calls `each` with the frames of a stack, the youngest first, and with `context`; not at all if there is no
    /// such stack. Any number may be asked.
    pub site_frames: unsafe extern "C" fn(site: u64, context: *mut c_void, each: EachFrame),

    /// Writes a dump to `path`, a C string, or to the path of the dump at the end of the process if it is null. Returns
    /// 0, the system's number of an error, or -1 if the engine records nothing.
    pub dump: unsafe extern "C" fn(path: *const c_char) -> c_int,
    /// Runs all reporters, with a deadline for each in milliseconds unless that is 0, and does as `dump`.
    pub report_and_dump: unsafe extern "C" fn(path: *const c_char, milliseconds: u64) -> c_int,
    /// For tests: forgets all blocks and continues with other options, a C string with words as in `$DMD`. Returns 0, or
    /// the system's number of an error.
    pub reset: unsafe extern "C" fn(options: *const c_char) -> c_int,

    /// Calls `each` with every live block and with `context`.
    pub live_blocks: unsafe extern "C" fn(context: *mut c_void, each: EachBlock),
    /// As `site`, for the block around the address.
    pub enclosing_site: extern "C" fn(address: *const c_void) -> u64,
    /// Calls `each` with the type of the blocks that a stack allocated and with `context`; not at all if the type is
    /// unknown.
    pub site_type: unsafe extern "C" fn(site: u64, context: *mut c_void, each: EachName),
    /// Opens a log of the allocations from now on. Returns its number, 0 if there is no room for it, or [`LOG_OF_SAMPLE`]
    /// if the engine takes a sample.
    pub open_log: extern "C" fn(limits: LogLimits) -> u32,
    /// Changes the limits of a log; false, and nothing changes, if there is no memory for them.
    pub limit_log: extern "C" fn(log: u32, limits: LogLimits) -> bool,
    /// Writes to `state` what a log contains.
    pub log_state: unsafe extern "C" fn(log: u32, state: *mut LogState),
    /// Empties a log: calls `each` with every allocation, the oldest first, and with `context`.
    pub drain_log: unsafe extern "C" fn(log: u32, context: *mut c_void, each: EachBlock),
    /// Closes a log. Its number may then stand for another.
    pub close_log: extern "C" fn(log: u32),
    /// The time now on the clock of [`BlockRow::tick`].
    pub ticks: extern "C" fn() -> u64,
    /// Whether the engine records blocks, or waits for `start_tracking`.
    pub may_record: extern "C" fn() -> bool,
    /// Starts to record in an engine that waits: a sample by bytes with this mean distance, or with 0 every block.
    /// Returns 0, the system's number for "busy" if the engine records already, or -1 if it neither records nor waits.
    pub start_tracking: extern "C" fn(mean: u64) -> c_int,
    /// Ends what `start_tracking` or `start_recording` began; the engine forgets all blocks and waits again.
    pub stop_tracking: extern "C" fn(),
    /// As `start_tracking` with 0, and records all events into a file with this absolute path, a C string. An error of the
    /// file is returned by the system's number, too.
    pub start_recording: unsafe extern "C" fn(path: *const c_char) -> c_int,
    /// Calls `body` with `context`. The engine records no block that it allocates. It does not unwind.
    pub unrecorded: unsafe extern "C" fn(context: *mut c_void, body: Body),
    /// As `drain_log`, without looking up symbols. Writes to `state` what the log contained.
    pub drain_log_places:
        unsafe extern "C" fn(log: u32, state: *mut LogState, context: *mut c_void, each: EachBlock),
    /// As `site_frames`, with modules and offsets only: without looking up symbols.
    pub site_places: unsafe extern "C" fn(site: u64, context: *mut c_void, each: EachFrame),
    /// Bytes of the rings of all logs, which the system gives when they are written.
    pub log_bytes: extern "C" fn() -> u64,
    /// Makes a copy of this process and writes what it is to `copy`. Returns 0, the system's number of an error, or -1 if
    /// the engine records nothing or the system copies no processes.
    pub copy_process: unsafe extern "C" fn(copy: *mut CopyHandle) -> c_int,
    /// Ends a copy that `copy_process` made, once.
    pub end_copy: extern "C" fn(copy: CopyHandle),
    /// Returns the usable bytes of the block that has this address inside; 0 if the engine knows no such block. It marks
    /// nothing.
    pub usable: extern "C" fn(address: *const c_void) -> usize,
    /// Names the peer of the session that `start_tracking` began, by the descriptor of a connection. If the process ends first, or
    /// becomes another program, the engine sends the dump there, compressed. [`NO_PEER`] takes that back. Returns 1 if the
    /// session has this peer from now on, or with [`NO_PEER`] if it still had one, and otherwise 0.
    pub set_session_peer: extern "C" fn(descriptor: c_int) -> c_int,
    /// Bytes outside of the heap that the engine's own code uses, mostly for symbols that it has looked up.
    pub working_bytes: extern "C" fn() -> u64,
}

/// The result of a program's search for a preloaded engine.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_enums, reason = "crates of this workspace handle every case")]
pub enum PreloadedEngine {
    /// No library with the symbol, so none of this version.
    Nothing,
    /// This copy of the crate is part of the preloaded library.
    Itself,
    /// An older engine of this version, with fewer entries than this copy of the crate needs.
    Older,
    /// An engine that this copy of the crate understands.
    Engine(&'static EngineTable),
}

/// Looks for a preloaded engine. Calls the loader, which may allocate.
#[allow(unsafe_code, reason = "calls a symbol of another library")]
pub fn preloaded() -> PreloadedEngine {
    let symbol = match platform::find_symbol(SYMBOL) {
        FoundSymbol::Nowhere => return PreloadedEngine::Nothing,
        FoundSymbol::Here => return PreloadedEngine::Itself,
        FoundSymbol::Elsewhere(symbol) => symbol,
    };
    // SAFETY: the name contains the version, and `libdmd.so` exports a function of exactly this type by it.
    let table: extern "C" fn() -> *const EngineTable = unsafe { core::mem::transmute(symbol) };
    let table = table();
    // SAFETY: the function returns a static table, which begins with its size in every version.
    if unsafe { table.cast::<usize>().read() } < size_of::<EngineTable>() {
        return PreloadedEngine::Older;
    }
    // SAFETY: a static table with all entries of this version, as its size says.
    PreloadedEngine::Engine(unsafe { &*table })
}

static ENGINE: AtomicPtr<EngineTable> = AtomicPtr::new(null_mut());

/// Connects an engine until the process ends: this copy of the crate marks blocks through it. It does not allocate.
///
/// # Safety
///
/// Each function of the table keeps the contract of its entry, on every thread and until the process ends.
#[allow(unsafe_code, reason = "safe functions of this module rely on the table")]
pub unsafe fn connect(engine: &'static EngineTable) {
    ENGINE.store(core::ptr::from_ref(engine).cast_mut(), Ordering::Release);
}

/// This copy of the crate is the preloaded library's own, whose heap is not the one that the engine records.
static IS_ITSELF: AtomicBool = AtomicBool::new(false);

/// As [`connect`], for the copy of the crate in the preloaded library itself, which answers for programs that do not
/// link the crate.
///
/// # Safety
///
/// As for [`connect`].
#[allow(unsafe_code, reason = "safe functions of this module rely on the table")]
pub unsafe fn connect_itself(engine: &'static EngineTable) {
    IS_ITSELF.store(true, Ordering::Relaxed);
    // SAFETY: the caller guarantees what `connect` asks for.
    unsafe { connect(engine) };
}

/// Whether this copy of the crate is the preloaded library's own.
pub(crate) fn is_itself() -> bool {
    IS_ITSELF.load(Ordering::Relaxed)
}

/// Connects this program with a preloaded engine that records, if there is one. Returns false if this copy of the
/// crate is the engine's own, with which no program reports.
#[allow(unsafe_code, reason = "uses a table of another library")]
pub(crate) fn connect_preloaded(run_reporters: RunReporters) -> bool {
    match preloaded() {
        PreloadedEngine::Itself => return false,
        PreloadedEngine::Engine(engine) if (engine.may_record)() => {
            (engine.add_program)(run_reporters);
            // SAFETY: the table of `libdmd.so`, whose functions are those of the crate `dmd`.
            unsafe { connect(engine) };
        }
        PreloadedEngine::Nothing | PreloadedEngine::Older | PreloadedEngine::Engine(_) => {}
    }
    true
}

fn engine() -> Option<&'static EngineTable> {
    // SAFETY: the pointer is null, or `connect` stored a reference that is valid until the process ends.
    #[allow(unsafe_code, reason = "a table of another library")]
    unsafe {
        ENGINE.load(Ordering::Acquire).as_ref()
    }
}

/// Whether an engine is connected.
pub fn is_connected() -> bool {
    engine().is_some()
}

/// Sizes of the engine's own tables, if one is connected.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub(crate) fn engine_sizes() -> Option<Sizes> {
    let engine = engine()?;
    let mut sizes = Sizes::default();
    // SAFETY: the maker of the table guarantees that the function writes one `Sizes`, for which `sizes` has room.
    unsafe { (engine.sizes)(&raw mut sizes) };
    Some(sizes)
}

/// Bytes of all logs of allocations in the engine, if one is connected.
pub(crate) fn log_bytes() -> Option<u64> {
    Some((engine()?.log_bytes)())
}

/// Bytes outside of the heap that the engine's own code uses; `None` without an engine.
pub(crate) fn working_bytes() -> Option<u64> {
    Some((engine()?.working_bytes)())
}

/// Usable bytes of all live blocks, if an engine records the blocks that Rust allocates: it must know a block that
/// this function allocates for the question.
pub(crate) fn heap() -> Option<u64> {
    let engine = engine()?;
    if is_itself() {
        return Some((engine.heap)(core::ptr::null())).filter(|bytes| *bytes != 0);
    }
    let probe = core::hint::black_box(Box::new(0_u64));
    let bytes = (engine.heap)((&raw const *probe).cast());
    (bytes != 0).then_some(bytes)
}
