//! Connects a hook or an entry point with the engine that records for this process.
//!
//! A program may have several copies of this library: one linked in, and one preloaded. Calls in the linked copy go to
//! the engine of the preloaded copy, if the linked copy understands its table (see [`memory_reporter::engine_abi`]).
//! Otherwise they go to the engine of the linked copy.

use core::alloc::Layout;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use dmd_format::LINKED_MARK;
use dmd_format::first_process::{self, FirstProcess};
use memory_reporter::engine_abi::{EngineTable, MoveRoom, NO_PATH, ON_ALLOC, PreloadedEngine, preloaded};

pub(crate) use crate::boundary::hooks_off::is_off;
use crate::boundary::hooks_off::set_off;
use crate::boundary::self_test::{self, Allocator};
use crate::boundary::{black_box, dumping, engine_abi};
use crate::engine::{ENGINE, EngineSetup, Phase};
use crate::options::Options;
use crate::recording;
use crate::system::errno::keeping_errno;
use crate::system::slot::{Guard, Inside, slot};
use crate::system::{internal_alloc, log, process};

/// The engine that records for this process, through its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorder(&'static EngineTable);

/// The engine in this copy of the library.
const LOCAL: Recorder = Recorder(&engine_abi::TABLE);

/// Null until a call finds the engine.
static CURRENT: AtomicPtr<EngineTable> = AtomicPtr::new(null_mut());

/// Whether this copy's engine samples blocks by bytes and does not sample a new block of this size. A hook calls this
/// once for each block, and does not record the block if the result is true.
#[inline(always)]
pub(crate) fn passes_over(requested: usize) -> bool {
    ENGINE.passes_over(requested)
}

/// Whether it is certain that this copy's engine samples blocks by bytes and has no record of this block, and that
/// [`internal_alloc`] does not own the block.
#[inline(always)]
pub(crate) fn has_no_record(block: *mut u8) -> bool {
    ENGINE.phase() == Phase::Sampling && ENGINE.has_no_record(block.addr()) && !internal_alloc::owns(block)
}

/// The engine that records; `None` if no engine records. The first call looks for a preloaded engine. If it finds none
/// that it can use, it starts an engine with these options. It takes the options of `$DMD` if `options` is `None`, or
/// if `$DMD` is set and `options` ask the engine to wait for a request.
#[inline(always)]
pub(crate) fn current(options: &Option<Options>) -> Option<Recorder> {
    if is_off() {
        return None;
    }
    match known() {
        Some(recorder) => Some(recorder),
        None => decide(options),
    }
}

/// The engine that an earlier call found.
#[inline(always)]
fn known() -> Option<Recorder> {
    // SAFETY: the pointer is null, or a table, which every copy of the library keeps in a static.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }.map(Recorder)
}

fn remember(recorder: Recorder) {
    CURRENT.store(core::ptr::from_ref(recorder.0).cast_mut(), Ordering::Release);
}

#[cold]
fn decide(options: &Option<Options>) -> Option<Recorder> {
    // The loader may allocate: the engine does not record blocks of the loader.
    if slot().guard.is_set() {
        return None;
    }
    core::hint::black_box(LINKED_MARK);
    let inside = Inside::deeper();
    let preloaded = keeping_errno(|| {
        let found = preloaded();
        let usable = usable(found).filter(|recorder| recorder.may_record());
        if usable.is_none() {
            start_local(*options);
            if matches!(found, PreloadedEngine::Older) {
                log::say(format_args!(
                    "the preloaded libdmd.so is older than this program's copy of the crate dmd: each of them records separately"
                ));
            }
        }
        usable
    });
    let recorder = match (preloaded, ENGINE.phase()) {
        (Some(preloaded), _) => Some(preloaded),
        (None, Phase::On | Phase::Sampling) => Some(LOCAL),
        // Another thread starts the engine: this block is not recorded, and the next call checks again.
        (None, Phase::Starting | Phase::StartingSession) => return None,
        (None, Phase::Undecided | Phase::Off) => None,
        // A request switches the hooks on.
        (None, Phase::Waiting) => {
            remember(LOCAL);
            None
        }
    };
    match recorder {
        Some(recorder) => remember(recorder),
        None => set_off(true),
    }
    drop(inside);
    if ENGINE.phase() == Phase::On {
        self_test::run(THIS_PROGRAM);
    }
    recorder
}

/// The allocator of the program that this copy of the library is linked into.
const THIS_PROGRAM: Allocator = Allocator {
    alloc: |bytes| match Layout::from_size_align(bytes, 16) {
        // SAFETY: the self-test requests sizes that are not 0.
        Ok(layout) => unsafe { std::alloc::alloc(layout) },
        Err(_) => null_mut(),
    },
    free: |block, bytes| {
        if let Ok(layout) = Layout::from_size_align(bytes, 16) {
            // SAFETY: the self-test passes a block of `alloc` above with its size.
            unsafe { std::alloc::dealloc(block, layout) };
        }
    },
};

fn start_local(options: Option<Options>) {
    // SAFETY: the name ends in 0.
    let variable = || unsafe { libc::getenv(c"DMD".as_ptr()) };
    let options = options.filter(|options| !options.wait_for_track || variable().is_null());
    let (setup, first, value) = match options {
        Some(options) => (EngineSetup { options, variable: None }, None, null_mut()),
        None => {
            let variable = variable();
            if variable.is_null() {
                return ENGINE.switch_off();
            }
            // SAFETY: the environment does not change before `main`, and its strings are never freed.
            match EngineSetup::parse(unsafe { CStr::from_ptr(variable) }) {
                Some((setup, first)) => (setup, first, variable),
                None => return ENGINE.switch_off(),
            }
        }
    };
    // SAFETY: `first`, if any, is from this variable, and no other code uses the environment before `main`.
    unsafe { process::start(first, value) };
    if ENGINE.start(setup) {
        recording::start();
        // The program's Rust code runs, so the C library is ready.
        recording::start_writer();
        engine_abi::connect_local();
        black_box::start();
    }
}

impl EngineSetup {
    /// Reads the value of `$DMD`; `None` if it switches DMD off. Ends the process if a word is bad.
    pub(crate) fn parse(variable: &'static CStr) -> Option<(Self, Option<FirstProcess>)> {
        let (users, first) = first_process::split(process::keep(variable));
        if first.is_none() && Options::is_off(users) {
            return None;
        }
        match Options::parse(users) {
            Ok(options) => Some((Self { options, variable: Some(users) }, first)),
            Err(bad) => {
                log::say_anyway(format_args!("{bad}"));
                // SAFETY: `_exit` ends the process, and the program's code has not run.
                unsafe { libc::_exit(1) }
            }
        }
    }
}

/// The preloaded engine, if this copy of the library understands it.
fn usable(found: PreloadedEngine) -> Option<Recorder> {
    match found {
        PreloadedEngine::Engine(table) => Some(Recorder(table)),
        PreloadedEngine::Older | PreloadedEngine::Itself | PreloadedEngine::Nothing => None,
    }
}

/// The engine that records; `None` if no engine records. Entry points call this function. It does not start an engine:
/// without a hook, an engine would have no blocks.
pub(crate) fn running_one() -> Option<Recorder> {
    if is_off() {
        return None;
    }
    if let Some(recorder) = known() {
        return Some(recorder).filter(|recorder| recorder.is_running());
    }
    // The loader may allocate: the engine does not record blocks of the loader.
    let _inside = Inside::deeper();
    let recorder = usable(preloaded()).unwrap_or(LOCAL);
    if !recorder.is_running() {
        return None;
    }
    // Keep the engine: the next call may come from a signal handler, which must not call the loader.
    remember(recorder);
    Some(recorder)
}

/// Notes that this copy of the library is preloaded. If its engine runs, all calls then find the engine without the
/// loader.
pub(crate) fn is_preloaded() {
    dumping::hooks_are_here();
    if LOCAL.may_record() {
        remember(LOCAL);
    }
}

/// Returns the engine that records. If no engine records, returns the engine of this copy of the library, which then
/// writes no dump.
pub(crate) fn any() -> Recorder {
    running_one().unwrap_or(LOCAL)
}

/// A block that moves from one address to another. Only the engine that began the move can interpret the contents.
#[derive(Debug)]
pub(crate) struct MovingBlock(MoveRoom);

impl Recorder {
    /// Whether the engine records, or waits for a request to record.
    fn may_record(self) -> bool {
        (self.0.may_record)()
    }

    fn is_running(self) -> bool {
        (self.0.is_running)()
    }

    /// Runs a call of the allocator in such a way that other hooks do not record its blocks.
    #[inline]
    pub(crate) fn guarded<T>(self, body: impl FnOnce() -> T) -> T {
        let guard = self.guard();
        if guard.is_used() {
            (self.0.look_at_guard)();
        }
        guard.around(body)
    }

    #[inline]
    fn guard(self) -> &'static Guard {
        // SAFETY: the table's function returns the guard of this thread, which does not move. All engines of this
        // version have this layout. The reference does not leave the thread.
        unsafe { &*(self.0.guard)().cast() }
    }

    /// Whether this thread is inside the engine of this copy of the library, which then allocates through the
    /// program's wrapper. A preloaded engine has an allocator of its own.
    #[inline]
    pub(crate) fn is_ours_and_inside(self) -> bool {
        core::ptr::eq(self.0, LOCAL.0) && slot().guard.is_for_the_engine()
    }

    #[inline(always)]
    pub(crate) fn record(self, address: *mut u8, requested: usize, usable: usize) {
        (self.0.record)(address.cast(), requested, usable);
    }

    /// Lets a black box write a dump: the allocator has no memory for this many bytes.
    #[cold]
    pub(crate) fn allocation_failed(self, requested: usize) {
        (self.0.allocation_failed)(requested);
    }

    #[inline(always)]
    pub(crate) fn forget(self, address: *mut u8) {
        (self.0.forget)(address.cast());
    }

    #[inline(always)]
    pub(crate) fn begin_move(self, address: *mut u8) -> MovingBlock {
        let mut moving = MovingBlock(MoveRoom::EMPTY);
        // SAFETY: `moving` is room for the engine to write to.
        unsafe { (self.0.begin_move)(address.cast(), &raw mut moving.0) };
        moving
    }

    /// Commits a move that this engine began: the hook keeps the [`Recorder`] during the move.
    #[inline(always)]
    pub(crate) fn commit_move(self, moving: &MovingBlock) {
        // SAFETY: `begin_move` filled the room.
        unsafe { (self.0.commit_move)(&raw const moving.0) };
    }

    /// Rolls back a move that this engine began, as for [`commit_move`](Self::commit_move).
    #[inline(always)]
    pub(crate) fn roll_back_move(self, moving: &MovingBlock) {
        // SAFETY: `begin_move` filled the room.
        unsafe { (self.0.roll_back_move)(&raw const moving.0) };
    }

    pub(crate) fn report(self, address: *const c_void, on_alloc: bool) -> usize {
        (self.0.mark)(address, NO_PATH, if on_alloc { ON_ALLOC } else { 0 })
    }

    pub(crate) fn clear_reports(self) {
        (self.0.clear_marks)();
    }

    /// # Safety
    ///
    /// The path ends in 0, or is null.
    pub(crate) unsafe fn dump(self, path: *const c_char) -> c_int {
        // SAFETY: the path is null or ends in 0: `entry` guarantees that.
        unsafe { (self.0.dump)(path) }
    }

    /// # Safety
    ///
    /// The path ends in 0, or is null.
    pub(crate) unsafe fn report_and_dump(self, path: *const c_char) -> c_int {
        // SAFETY: the path is null or ends in 0: `entry` guarantees that.
        unsafe { (self.0.report_and_dump)(path, 0) }
    }

    /// # Safety
    ///
    /// The options end in 0.
    pub(crate) unsafe fn reset(self, options: *const c_char) -> c_int {
        // SAFETY: the options end in 0: `entry` guarantees that.
        unsafe { (self.0.reset)(options) }
    }
}
