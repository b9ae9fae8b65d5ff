//! The way from a hook, or from an entry point, to the engine that records for this process.
//!
//! A program may have several copies of this library: linked in, and preloaded. One copy records for all: the
//! preloaded one, which the others find by a C symbol with its version in the name. The copies share a `repr(C)`
//! table of functions, and nothing in it is a Rust type.

use core::alloc::Layout;
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::doors::self_test::{self, Allocator};
use crate::doors::with_caller::with_caller;
use crate::doors::{bridge, dumping};
use crate::engine::{BlockMove, ENGINE, Phase, Setup};
use crate::first_process::{self, First};
use crate::options::Options;
use crate::system::errno::keeping_errno;
use crate::system::slot::{Guard, Inside, slot};
use crate::system::{log, process};
use crate::tables::mark::PathId;

/// The functions of one engine.
#[repr(C)]
#[derive(Debug)]
pub struct Door {
    /// Bytes of this table: later versions may add functions at its end.
    size: usize,
    running: extern "C" fn() -> bool,
    /// This thread's guard: not 0 while the engine does not record its allocations. For callers without
    /// `whole_guard`.
    guard: extern "C" fn() -> *const Cell<u32>,
    record: extern "C" fn(address: *mut c_void, requested: usize, usable: usize),
    forget: extern "C" fn(address: *mut c_void),
    begin_move: extern "C" fn(address: *mut c_void, begun: *mut BlockMove),
    commit_move: extern "C" fn(begun: *const BlockMove),
    roll_back_move: extern "C" fn(begun: *const BlockMove),
    report: extern "C" fn(address: *const c_void, flags: usize) -> usize,
    clear_reports: extern "C" fn(),
    dump: unsafe extern "C" fn(path: *const c_char) -> c_int,
    report_and_dump: unsafe extern "C" fn(path: *const c_char) -> c_int,
    reset: unsafe extern "C" fn(options: *const c_char) -> c_int,
    /// All of the guard: its counter, and the stack pointer of the code that set it.
    whole_guard: extern "C" fn() -> *const Guard,
    /// Clears the guard if a jump left the code that set it, so that it never returns.
    look_at_guard: extern "C" fn(),
}

/// The name of the function that returns a preloaded engine's table.
const SYMBOL: &CStr = c"DMDDoor1";

static LOCAL: Door = Door {
    size: size_of::<Door>(),
    running,
    guard,
    record,
    forget,
    begin_move,
    commit_move,
    roll_back_move,
    report,
    clear_reports,
    dump: dumping::local_dump,
    report_and_dump: dumping::local_report_and_dump,
    reset: dumping::local_reset,
    whole_guard,
    look_at_guard,
};

/// Null until a call finds the engine.
static CURRENT: AtomicPtr<Door> = AtomicPtr::new(null_mut());

/// Whether nothing records, for certain. A flag of its own: a hook then costs one look at it.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Whether nothing records, for certain.
#[inline(always)]
pub(crate) fn is_off() -> bool {
    IS_OFF.load(Ordering::Relaxed)
}

/// The door to the engine that records, if one does. The first call looks for a preloaded engine, or starts one
/// with these options; without options, `$DMD` decides.
#[inline(always)]
pub(crate) fn current(options: &Option<Options>) -> Option<&'static Door> {
    if is_off() {
        return None;
    }
    let door = CURRENT.load(Ordering::Acquire);
    // SAFETY: null, or a table, which every copy of the library keeps in a static.
    match unsafe { door.as_ref() } {
        Some(door) => Some(door),
        None => decide(options),
    }
}

#[cold]
fn decide(options: &Option<Options>) -> Option<&'static Door> {
    // The loader may allocate: those blocks are not recorded.
    if slot().guard.is_set() {
        return None;
    }
    let inside = Inside::deeper();
    let door = keeping_errno(|| {
        let preloaded = preloaded().filter(|door| (door.running)());
        if preloaded.is_none() {
            start_local(*options);
        }
        preloaded
    });
    let door = match (door, ENGINE.phase()) {
        (Some(preloaded), _) => Some(preloaded),
        (None, Phase::On) => Some(&LOCAL),
        // Another thread starts the engine: this block is not recorded, and the next call looks again.
        (None, Phase::Starting) => return None,
        (None, Phase::Undecided | Phase::Off) => None,
    };
    match door {
        Some(door) => CURRENT.store(core::ptr::from_ref(door).cast_mut(), Ordering::Release),
        None => IS_OFF.store(true, Ordering::Relaxed),
    }
    drop(inside);
    if ENGINE.phase() == Phase::On {
        self_test::run(THIS_PROGRAM);
    }
    door
}

/// The allocator of the program that this copy of the library is linked into.
const THIS_PROGRAM: Allocator = Allocator {
    alloc: |bytes| match Layout::from_size_align(bytes, 16) {
        // SAFETY: the self-test asks for sizes that are not 0.
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
    let (setup, first, value) = match options {
        Some(options) => (Setup { options, variable: None }, None, null_mut()),
        None => {
            // SAFETY: the name ends in 0.
            let variable = unsafe { libc::getenv(c"DMD".as_ptr()) };
            if variable.is_null() {
                return ENGINE.switch_off();
            }
            // SAFETY: nobody changes the environment before `main`, and nobody frees its strings.
            let (setup, first) = Setup::parse(unsafe { CStr::from_ptr(variable) });
            (setup, first, variable)
        }
    };
    // SAFETY: `first`, if any, is from this variable, and nobody else uses the environment before `main`.
    unsafe { process::start(first, value) };
    if ENGINE.start(setup) {
        bridge::connect_local();
    }
}

impl Setup {
    /// Reads the value of `$DMD`, and ends the process if a word is bad.
    pub(crate) fn parse(variable: &'static CStr) -> (Self, Option<First>) {
        let (users, first) = first_process::split(process::keep(variable));
        match Options::parse(users) {
            Ok(options) => (Self { options, variable: Some(users) }, first),
            Err(bad) => {
                log::say_anyway(format_args!("{bad}"));
                // SAFETY: `_exit` ends the process, and nothing of the program has run.
                unsafe { libc::_exit(1) }
            }
        }
    }
}

/// The door of a preloaded engine.
pub(crate) fn preloaded() -> Option<&'static Door> {
    // SAFETY: the name ends in 0.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, SYMBOL.as_ptr()) };
    if symbol.is_null() {
        // The program must not take the loader's error for one of its own.
        // SAFETY: `dlerror` only takes the error away.
        unsafe { libc::dlerror() };
        return None;
    }
    // SAFETY: a symbol of this name, version included, is `libdmd.so`'s function, which returns such a table.
    let door: extern "C" fn() -> *const Door = unsafe { core::mem::transmute(symbol) };
    // SAFETY: the function returns null or a static table.
    unsafe { door().as_ref() }.filter(|door| door.size >= size_of::<Door>())
}

/// The door of the engine in this copy of the library: `DMDDoor1` of `libdmd.so` returns it.
pub fn local() -> *const Door {
    &raw const LOCAL
}

/// The door to the engine that records, if one does. Entry points call this: it starts no engine, since without a
/// hook an engine would know no blocks.
pub(crate) fn running_one() -> Option<&'static Door> {
    if is_off() {
        return None;
    }
    // SAFETY: null, or a table, which every copy of the library keeps in a static.
    if let Some(door) = unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        return Some(door);
    }
    // The loader may allocate: those blocks are not recorded.
    let _inside = Inside::deeper();
    let door = preloaded().unwrap_or(&LOCAL);
    if !(door.running)() {
        return None;
    }
    // Keep it: the next call may come from a signal handler, which must not call the loader.
    CURRENT.store(core::ptr::from_ref(door).cast_mut(), Ordering::Release);
    Some(door)
}

/// Notes that this copy of the library is preloaded: if its engine runs, all calls use it without the loader.
pub(crate) fn is_preloaded() {
    dumping::hooks_are_here();
    if running() {
        CURRENT.store((&raw const LOCAL).cast_mut(), Ordering::Release);
    }
}

/// The door to the engine that records, or our own door, which says that nothing is recorded.
pub(crate) fn any() -> &'static Door {
    running_one().unwrap_or(&LOCAL)
}

/// Flag of `report`: the mark is made at allocation, and stays.
pub(crate) const ON_ALLOC: usize = 1;

impl Door {
    #[inline]
    pub(crate) fn guarded<T>(&self, body: impl FnOnce() -> T) -> T {
        let guard = self.whole_guard();
        if guard.counter().get() != 0 {
            (self.look_at_guard)();
        }
        guard.around(body)
    }

    #[inline]
    fn whole_guard(&self) -> &Guard {
        // SAFETY: the table's function returns a part of this thread's slot, which stays where it is.
        unsafe { &*(self.whole_guard)() }
    }

    /// Whether this thread is inside the engine of this copy of the library, which then allocates through the
    /// program's wrapper. A preloaded engine has an allocator of its own.
    #[inline]
    pub(crate) fn is_ours_and_inside(&self) -> bool {
        core::ptr::eq(self, &raw const LOCAL) && slot().guard.is_for_the_engine()
    }

    #[inline(always)]
    pub(crate) fn record(&self, address: *mut u8, requested: usize, usable: usize) {
        (self.record)(address.cast(), requested, usable);
    }

    #[inline(always)]
    pub(crate) fn forget(&self, address: *mut u8) {
        (self.forget)(address.cast());
    }

    #[inline(always)]
    pub(crate) fn begin_move(&self, address: *mut u8) -> BlockMove {
        let mut begun = BlockMove::NOTHING;
        (self.begin_move)(address.cast(), &raw mut begun);
        begun
    }

    #[inline(always)]
    pub(crate) fn commit_move(&self, begun: &BlockMove) {
        (self.commit_move)(begun);
    }

    #[inline(always)]
    pub(crate) fn roll_back_move(&self, begun: &BlockMove) {
        (self.roll_back_move)(begun);
    }

    pub(crate) fn report(&self, address: *const c_void, on_alloc: bool) -> usize {
        (self.report)(address, if on_alloc { ON_ALLOC } else { 0 })
    }

    pub(crate) fn clear_reports(&self) {
        (self.clear_reports)();
    }

    /// # Safety
    ///
    /// The path ends in 0, or is null.
    pub(crate) unsafe fn dump(&self, path: *const c_char) -> c_int {
        // SAFETY: the path is null or ends in 0: `entry` passes such a one.
        unsafe { (self.dump)(path) }
    }

    /// # Safety
    ///
    /// The path ends in 0, or is null.
    pub(crate) unsafe fn report_and_dump(&self, path: *const c_char) -> c_int {
        // SAFETY: the path is null or ends in 0: `entry` passes such a one.
        unsafe { (self.report_and_dump)(path) }
    }

    /// # Safety
    ///
    /// The options end in 0.
    pub(crate) unsafe fn reset(&self, options: *const c_char) -> c_int {
        // SAFETY: the options end in 0: `entry` passes such a string.
        unsafe { (self.reset)(options) }
    }
}

extern "C" fn running() -> bool {
    ENGINE.phase() == Phase::On
}

extern "C" fn guard() -> *const Cell<u32> {
    slot().guard.counter()
}

extern "C" fn whole_guard() -> *const Guard {
    &raw const slot().guard
}

extern "C" fn look_at_guard() {
    slot().guard.is_set();
}

with_caller!(
    /// Records a block.
    record(address: *mut c_void, requested: usize, usable: usize) => record_for, "rcx", "x3"
);

extern "C" fn record_for(address: *mut c_void, requested: usize, usable: usize, caller: usize) {
    ENGINE.record(address.addr(), requested, usable, caller);
}

with_caller!(
    /// Marks a block, and returns its usable bytes.
    report(address: *const c_void, flags: usize) -> usize => report_for, "rdx", "x2"
);

extern "C" fn report_for(address: *const c_void, flags: usize, caller: usize) -> usize {
    ENGINE.report(address.addr(), PathId::NONE, flags & ON_ALLOC != 0, false, caller)
}

extern "C" fn forget(address: *mut c_void) {
    ENGINE.forget(address.addr());
}

extern "C" fn begin_move(address: *mut c_void, begun: *mut BlockMove) {
    // SAFETY: `Door::begin_move` passes a place for it.
    unsafe { begun.write(ENGINE.begin_move(address.addr())) };
}

extern "C" fn commit_move(begun: *const BlockMove) {
    // SAFETY: `Door::commit_move` passes what `begin_move` wrote.
    ENGINE.commit_move(unsafe { *begun });
}

extern "C" fn roll_back_move(begun: *const BlockMove) {
    // SAFETY: `Door::roll_back_move` passes what `begin_move` wrote.
    ENGINE.roll_back_move(unsafe { *begun });
}

extern "C" fn clear_reports() {
    ENGINE.clear_reports();
}
