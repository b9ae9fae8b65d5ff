//! The boundary between a program and an engine of DMD: one table of C functions, [`EngineTable`].
//!
//! An engine records live blocks and their reporters. The program links the engine with the crate `dmd`, or the
//! engine is preloaded as `libdmd.so`. Both provide the same table, in a static that stays until the process ends.
//! The crates `memory-reporter`, `dmd` and `heap-graph` use this module; programs do not.
//!
//! # Who calls what, on which thread
//!
//! - A program looks for a preloaded engine by the C symbol [`SYMBOL`] ([`preloaded`]). The engine cannot look for
//!   the program, since the symbols of an executable are not dynamic. `memory-reporter` looks once, on the first
//!   thread before `main`, and calls `add_program` if the engine records or waits for `start_tracking`. The wrapper
//!   `dmd::Dmd` looks at the first allocation. If the wrapper finds no such engine, it starts and connects its own
//!   engine ([`connect`]).
//! - The wrapper calls the hook entries (`record` to `look_at_guard`) on every thread, in every allocation, also in
//!   signal handlers. These entries do not allocate, take no global lock, and keep `errno`.
//! - Reporters mark blocks (entries `path` to `is_unreported`) on the thread that measures. A collection starts and
//!   ends on one thread. Its reporters enter the run on the threads that execute them.
//! - `libdmd.so` contains a copy of `memory-reporter`. If `ABOUT_MEMORY` requests it, that copy answers for a program
//!   without `memory-reporter` ([`connect_itself`]). That copy stops when a program calls `add_program`; then the
//!   program answers.
//! - `dump` and `report_and_dump` write a file on the calling thread. `report_and_dump` calls `run_reporters` of
//!   every program on that thread. No other entry runs reporters.
//! - All entries may be called on every thread until the process ends. Entries do not unwind. They do not allocate in
//!   the program's heap, but the reporters that they run may allocate. A callback (`each`) runs on the calling thread
//!   before the entry returns.
//!
//! # Which versions understand each other
//!
//! The symbol's name ends in the version number. A version has a fixed meaning for every entry and a fixed layout for
//! every type here. A later release may only append entries, which [`EngineTable::size`] then includes, and add flags
//! that an older engine may ignore. Any other change makes a new version with a new name.
//!
//! | the engine has | what the program does |
//! | --- | --- |
//! | the same entries, or more | uses the entries that it was built with |
//! | fewer entries | does not use the engine |
//! | another version | does not find the engine: the name differs |
//!
//! In the last two cases `libdmd.so` records the blocks that pass through `malloc`, and reports of the program do not
//! mark them. If the program has the wrapper and `$DMD` is set, the engine in the program records too, and its dump
//! contains the reports. If the table has fewer entries, the wrapper prints a message to stderr. Each engine writes its
//! own dump. If the dump's name does not contain `%p`, the dump of `libdmd.so` replaces the program's dump. The tests
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
    BlockRow, EachBlock, EachName, EngineTypeName, LOG_OF_SAMPLE, LogLimits, LogState, black_box_folder,
    enclosing_site, for_each_live_block, site_type,
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

/// The value for "no path". In `withdraw` it means all paths.
pub const NO_PATH: PathNumber = PathNumber::MAX;

/// Flag of `mark`: this is a mark at the block's allocation, so it stays until the program frees the block.
pub const ON_ALLOC: u32 = 1;

/// Flag of `mark`: the address may be inside the block, not only at its start.
pub const ENCLOSING: u32 = 2;

/// Flag of `mark`: the engine records all blocks of the block's allocator, as [`PROBE`] has shown. If no block starts
/// at the address, the result is [`NOT_HEAP`], [`INTERIOR`] or [`FREED`].
pub const RECORDED: u32 = 4;

/// Flag of `mark`: it is unknown whether the engine records the blocks of the block's allocator, so an unknown pointer
/// is not a fault.
pub const FOREIGN: u32 = 8;

/// Flag of `mark`: `mark` only tests the address and does not mark a block. The result is 1 if the engine records every
/// live block and a block starts at the address; otherwise 0.
pub const PROBE: u32 = 16;

/// Result of `mark`: the pointer is outside of all blocks.
pub const NOT_HEAP: usize = usize::MAX;

/// Result of `mark`: the pointer is inside a block, but not at its start.
pub const INTERIOR: usize = usize::MAX - 1;

/// Result of `mark`: the pointer is the start of a freed block.
pub const FREED: usize = usize::MAX - 2;

/// The value for "no descriptor" in `set_session_peer`.
pub const NO_PEER: c_int = -1;

/// Runs all reporters of a program and drops their reports. Each reporter has at most `milliseconds`; 0 means no
/// deadline. The function does not unwind.
pub type RunReporters = extern "C" fn(milliseconds: u64);

/// Runs code. Unsafe to call: `context` must be the pointer that was passed together with this function, to a call
/// that has not returned yet.
pub type Body = unsafe extern "C" fn(context: *mut c_void);

/// Room for the engine's data about a block while the allocator moves the block. Only the engine interprets the
/// contents.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct MoveRoom([MaybeUninit<u8>; 128]);

impl MoveRoom {
    /// Uninitialized room.
    pub const EMPTY: Self = Self([MaybeUninit::uninit(); 128]);
}

impl fmt::Debug for MoveRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MoveRoom").finish_non_exhaustive()
    }
}

/// A copy of the process. A reader in another process reads the copy's memory while the original continues.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an engine fills it in")]
pub struct CopyHandle {
    /// The process number of the copy.
    pub process: c_int,
    /// The descriptor that `end_copy` uses to end the copy.
    pub hold: c_int,
}

/// The functions of an engine. An engine only compares the addresses of blocks; it does not read the memory there.
#[repr(C)]
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "an engine fills it in, entry by entry")]
pub struct EngineTable {
    /// The size of this table in bytes.
    pub size: usize,
    /// Whether the engine records blocks.
    pub is_running: extern "C" fn() -> bool,
    /// Adds a program. `report_and_dump` then also runs this program's reporters. The engine keeps the library that
    /// contains `run_reporters` loaded.
    pub add_program: extern "C" fn(run_reporters: RunReporters),

    /// Hook: records a new block. The innermost frame of its stack is the caller of this hook.
    pub record: extern "C" fn(address: *mut c_void, requested: usize, usable: usize),
    /// Hook: forgets a block, before the allocator frees it.
    pub forget: extern "C" fn(address: *mut c_void),
    /// Hook: forgets a block before the allocator moves it, and writes the engine's data about the block to `room`.
    pub begin_move: unsafe extern "C" fn(address: *mut c_void, room: *mut MoveRoom),
    /// Hook: the allocator has moved the block. `room` contains the data from `begin_move`.
    pub commit_move: unsafe extern "C" fn(room: *const MoveRoom),
    /// Hook: the allocator has not moved the block. `room` contains the data from `begin_move`.
    pub roll_back_move: unsafe extern "C" fn(room: *const MoveRoom),
    /// Hook: returns the address of this thread's guard, which is valid while the thread lives. The guard is a `u32`,
    /// then an aligned `usize`. The `u32` is not 0 while the thread is in the engine or in an allocator with
    /// a hook. The `usize` is the stack pointer of the code that set the guard first, or 0. A hook adds 2^16 to the
    /// `u32` around calls of its allocator, so that other hooks do not record parts of the same block.
    pub guard: extern "C" fn() -> *const c_void,
    /// Hook: clears the guard if a jump (`longjmp`) left the code that set it.
    pub look_at_guard: extern "C" fn(),

    /// Returns the number of a path, or [`NO_PATH`] if the engine marks no blocks. `text` has `len` bytes.
    pub path: unsafe extern "C" fn(text: *const u8, len: usize) -> PathNumber,
    /// Marks a block for a path, with the flags [`ON_ALLOC`] to [`PROBE`]. Returns the block's usable bytes; 0 for a
    /// block that the engine has not recorded. [`RECORDED`] and [`PROBE`] have other results. An older engine ignores
    /// an unknown flag.
    pub mark: extern "C" fn(address: *const c_void, path: PathNumber, flags: u32) -> usize,
    /// Adds `bytes` to the bytes that reports claim at a path.
    pub claim: extern "C" fn(path: PathNumber, bytes: u64),
    /// Removes the marks that a reporter has made for a path, or for all paths with [`NO_PATH`]. With reporter 0 it
    /// removes no marks. Subtracts `claimed` from the bytes claimed at the path.
    pub withdraw: extern "C" fn(reporter: u32, path: PathNumber, claimed: u64),
    /// Removes all marks except the marks that were made at allocation.
    pub clear_marks: extern "C" fn(),
    /// Whether a live block contains this address, and the run of this thread has not reported the block. False if the
    /// run does not own the marks.
    pub is_unreported: extern "C" fn(address: *const c_void) -> bool,

    /// Starts a run of reporters for a collection. If `rows` is true, the collection requests rows: unless another run
    /// owns the marks, this run then owns them, and earlier reports do not count. Returns a number for the run, or 0 if
    /// the engine marks no blocks.
    pub begin: extern "C" fn(rows: bool) -> u32,
    /// Sets the run to which the reporters on this thread belong from now on. Returns the number of the previous run;
    /// 0 means no run.
    pub enter: extern "C" fn(run: u32) -> u32,
    /// Returns a number for one reporter of one collection, never 0.
    pub new_reporter: extern "C" fn() -> u32,
    /// Sets the reporter to which the marks of this thread belong from now on. Returns the number of the previous
    /// reporter; 0 means no reporter.
    pub enter_reporter: extern "C" fn(reporter: u32) -> u32,
    /// Ends a collection that requested rows: calls `each` with every row and with `context`.
    pub end: unsafe extern "C" fn(run: u32, context: *mut c_void, each: EachRow) -> RowsOutcome,

    /// Writes the sizes of the engine's own tables to `sizes`, in bytes.
    pub sizes: unsafe extern "C" fn(sizes: *mut Sizes),
    /// Returns the usable bytes of all live blocks. Returns 0 if the engine does not record all live blocks, or if
    /// `probe` is neither null nor the start of a live block.
    pub heap: extern "C" fn(probe: *const c_void) -> u64,
    /// Returns the number of the stack that allocated the block at this address; 0 if the engine has no block at this
    /// address, or has not recorded the stack of the block.
    pub site: extern "C" fn(address: *const c_void) -> u64,
    /// Calls `each` with the frames of a stack, the innermost first, and with `context`. Does not call `each` if the
    /// number is unknown; every number is allowed.
    pub site_frames: unsafe extern "C" fn(site: u64, context: *mut c_void, each: EachFrame),

    /// Writes a dump to `path`, a C string. If `path` is null, writes to the path of the dump at the end of the
    /// process. Returns 0, the system's error number, or -1 if the engine is not recording.
    pub dump: unsafe extern "C" fn(path: *const c_char) -> c_int,
    /// Runs all reporters, then does the same as `dump`. `milliseconds` is the deadline of each reporter; 0 means no
    /// deadline.
    pub report_and_dump: unsafe extern "C" fn(path: *const c_char, milliseconds: u64) -> c_int,
    /// For tests: forgets all blocks and continues with other options, a C string with words as in `$DMD`. Returns 0,
    /// or the system's error number.
    pub reset: unsafe extern "C" fn(options: *const c_char) -> c_int,

    /// Calls `each` with every live block and with `context`.
    pub live_blocks: unsafe extern "C" fn(context: *mut c_void, each: EachBlock),
    /// Like `site`, but for the block that contains the address.
    pub enclosing_site: extern "C" fn(address: *const c_void) -> u64,
    /// Calls `each` with the type of the blocks that a stack allocated, and with `context`. Does not call `each` if the
    /// type is unknown.
    pub site_type: unsafe extern "C" fn(site: u64, context: *mut c_void, each: EachName),
    /// Opens a log of all later allocations. Returns the log's number, 0 if there is no room for it or if the engine
    /// does not record, or [`LOG_OF_SAMPLE`] if the engine records only a sample.
    pub open_log: extern "C" fn(limits: LogLimits) -> u32,
    /// Changes the limits of a log. Returns false and changes nothing if there is no memory for them.
    pub limit_log: extern "C" fn(log: u32, limits: LogLimits) -> bool,
    /// Writes the state of a log to `state`.
    pub log_state: unsafe extern "C" fn(log: u32, state: *mut LogState),
    /// Empties a log: calls `each` with every allocation, the oldest first, and with `context`.
    pub drain_log: unsafe extern "C" fn(log: u32, context: *mut c_void, each: EachBlock),
    /// Closes a log. A later log may get the same number.
    pub close_log: extern "C" fn(log: u32),
    /// The current time on the clock of [`BlockRow::tick`].
    pub ticks: extern "C" fn() -> u64,
    /// Whether the engine records blocks, or waits for `start_tracking`.
    pub may_record: extern "C" fn() -> bool,
    /// Starts recording in an engine that waits. `mean` is the mean distance of samples in bytes; 0 records every
    /// block. Returns 0, the system's number for "busy" if the engine already records, or -1 if it neither records
    /// nor waits.
    pub start_tracking: extern "C" fn(mean: u64) -> c_int,
    /// Ends the recording that `start_tracking` or `start_recording` started. The engine forgets all blocks and waits
    /// again.
    pub stop_tracking: extern "C" fn(),
    /// Like `start_tracking` with 0, but also records all events into a file with this absolute path, a C string. If
    /// the file causes an error, returns the system's error number.
    pub start_recording: unsafe extern "C" fn(path: *const c_char) -> c_int,
    /// Calls `body` with `context`. The engine does not record blocks that `body` allocates. `body` must not unwind.
    pub unrecorded: unsafe extern "C" fn(context: *mut c_void, body: Body),
    /// Like `drain_log`, but does not look up symbols. Writes the state of the log before draining to `state`.
    pub drain_log_places:
        unsafe extern "C" fn(log: u32, state: *mut LogState, context: *mut c_void, each: EachBlock),
    /// Like `site_frames`, but with modules and offsets only: does not look up symbols.
    pub site_places: unsafe extern "C" fn(site: u64, context: *mut c_void, each: EachFrame),
    /// The bytes of the ring buffers of all logs. The system provides the memory of a ring buffer when the engine
    /// writes to it.
    pub log_bytes: extern "C" fn() -> u64,
    /// Makes a copy of this process and describes the copy in `copy`. Returns 0, the system's error number, or -1 if
    /// the engine is not recording or the system cannot copy processes. If `copy` is null, the reader that the
    /// engine's options name keeps the copy.
    pub copy_process: unsafe extern "C" fn(copy: *mut CopyHandle) -> c_int,
    /// Ends a copy that `copy_process` made. Call it once for each copy.
    pub end_copy: extern "C" fn(copy: CopyHandle),
    /// Returns the usable bytes of the block that contains this address; 0 if the engine has no such block. It does
    /// not mark the block.
    pub usable: extern "C" fn(address: *const c_void) -> usize,
    /// Sets the peer of the session that `start_tracking` started, by the descriptor of a connection. If the process
    /// ends before the session, or executes another program, the engine sends the compressed dump to this peer.
    /// Returns 1 if the session now has this peer. [`NO_PEER`] removes the peer; then the result is 1 if the session
    /// still had a peer. Otherwise returns 0.
    pub set_session_peer: extern "C" fn(descriptor: c_int) -> c_int,
    /// The bytes outside of the heap that the engine's own code uses, mostly for symbols that it has looked up.
    pub working_bytes: extern "C" fn() -> u64,
    /// Writes the dump of a black box, if the options ask for one: the allocator has no memory for this many bytes. Any
    /// thread may call it, before it returns null to the program.
    pub allocation_failed: extern "C" fn(requested: usize),
    /// Calls `each` with the folder in which the black box keeps its dumps. Without a black box, `each` is not called.
    /// Returns the time in the name of this process's first dump there, or `u64::MAX` before it has written one.
    ///
    /// Unsafe to call: `context` must be the pointer that `each` takes.
    pub black_box_folder: unsafe extern "C" fn(context: *mut c_void, each: EachName) -> u64,
}

/// The result of a program's search for a preloaded engine.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_enums, reason = "crates of this workspace handle every case")]
pub enum PreloadedEngine {
    /// No loaded library has the symbol, so there is no engine of this version.
    Nothing,
    /// This copy of the crate is part of the preloaded library.
    Itself,
    /// An engine of this version, but of an older release: it has fewer entries than this copy of the crate needs.
    Older,
    /// An engine that this copy of the crate can use.
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
    // SAFETY: the name contains the version, and `libdmd.so` exports a function of exactly this type with this name.
    let table: extern "C" fn() -> *const EngineTable = unsafe { core::mem::transmute(symbol) };
    let table = table();
    // SAFETY: the function returns a static table, whose first field is its size in every version.
    if unsafe { table.cast::<usize>().read() } < size_of::<EngineTable>() {
        return PreloadedEngine::Older;
    }
    // SAFETY: the pointer is to a static table, and its size field shows that it has all entries of this version.
    PreloadedEngine::Engine(unsafe { &*table })
}

static ENGINE: AtomicPtr<EngineTable> = AtomicPtr::new(null_mut());

/// Connects an engine until the process ends. This copy of the crate then marks blocks through the engine. The call
/// does not allocate.
///
/// # Safety
///
/// Each function of the table keeps the contract of its entry, on every thread and until the process ends.
#[allow(unsafe_code, reason = "safe functions of this module rely on the table")]
pub unsafe fn connect(engine: &'static EngineTable) {
    ENGINE.store(core::ptr::from_ref(engine).cast_mut(), Ordering::Release);
}

/// Whether this copy of the crate belongs to the preloaded library. The engine does not record the library's heap.
static IS_ITSELF: AtomicBool = AtomicBool::new(false);

/// Like [`connect`], but for the copy of the crate in the preloaded library itself. That copy answers for programs that
/// do not link the crate.
///
/// # Safety
///
/// The contract of [`connect`] applies.
#[allow(unsafe_code, reason = "safe functions of this module rely on the table")]
pub unsafe fn connect_itself(engine: &'static EngineTable) {
    IS_ITSELF.store(true, Ordering::Relaxed);
    // SAFETY: the caller gives the guarantee that `connect` requires.
    unsafe { connect(engine) };
}

/// Whether this copy of the crate belongs to the preloaded library.
pub(crate) fn is_itself() -> bool {
    IS_ITSELF.load(Ordering::Relaxed)
}

/// Connects this program with a preloaded engine that records or waits, if there is one. Returns false if this copy
/// of the crate belongs to the engine: programs do not report with that copy.
#[allow(unsafe_code, reason = "uses a table of another library")]
pub(crate) fn connect_preloaded(run_reporters: RunReporters) -> bool {
    match preloaded() {
        PreloadedEngine::Itself => return false,
        PreloadedEngine::Engine(engine) if (engine.may_record)() => {
            (engine.add_program)(run_reporters);
            // SAFETY: the table is from `libdmd.so`, and the crate `dmd` implements its functions.
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

/// The sizes of the engine's own tables; `None` without an engine.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub(crate) fn engine_sizes() -> Option<Sizes> {
    let engine = engine()?;
    let mut sizes = Sizes::default();
    // SAFETY: the maker of the table guarantees that the function writes one `Sizes`, for which `sizes` has room.
    unsafe { (engine.sizes)(&raw mut sizes) };
    Some(sizes)
}

/// The bytes of all logs of allocations in the engine; `None` without an engine.
pub(crate) fn log_bytes() -> Option<u64> {
    Some((engine()?.log_bytes)())
}

/// The bytes outside of the heap that the engine's own code uses; `None` without an engine.
pub(crate) fn working_bytes() -> Option<u64> {
    Some((engine()?.working_bytes)())
}

/// The usable bytes of all live blocks, if an engine records the blocks that Rust allocates. To test whether the engine
/// records them, the function allocates a block and passes the block to the engine.
pub(crate) fn heap() -> Option<u64> {
    let engine = engine()?;
    if is_itself() {
        return Some((engine.heap)(core::ptr::null())).filter(|bytes| *bytes != 0);
    }
    let probe = core::hint::black_box(Box::new(0_u64));
    let bytes = (engine.heap)((&raw const *probe).cast());
    (bytes != 0).then_some(bytes)
}
