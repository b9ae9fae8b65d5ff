//! The black box: a thread that polls the memory of the process and its limit, and writes a dump shortly before the
//! limit. See [`BlackBox`](crate::BlackBox).
//!
//! The memory for a dump is set aside when the thread starts ([`reserve`]), so a dump neither allocates nor maps
//! memory, except if it needs more than the reserve. A process has one box; the child of a fork starts its own.

mod trigger;

use core::ffi::{CStr, c_char};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use dmd_format::kept_dump::{DumpReason, KeptDumpName, LifeSign};
use memory_reporter::__private::limits::{BoundKind, MemoryBound, MemoryGroups, tightest_bound_and_left};

use crate::dump::kept::KeptFolder;
use crate::dump::{self, BlackBoxFacts};
use crate::engine::ENGINE;
use crate::options::{BlackBox, Run};
use crate::system::bell::Bell;
use crate::system::errno::keeping_errno;
use crate::system::slot::{Inside, slot};
use crate::system::{
    background, clock, confined, engine_threads, fork, internal_alloc, late_start, log, own_stack, process,
    reserve, signals,
};
use trigger::{DumpTrigger, MemoryLook};

static BELL: Bell = Bell::new();
/// The process that has the thread; 0 before the start.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether the memory for a dump is set aside: [`PREPARING`], [`READY`] or [`WITHOUT_MEMORY`].
static READINESS: AtomicU8 = AtomicU8::new(PREPARING);
const PREPARING: u8 = 0;
const READY: u8 = 1;
const WITHOUT_MEMORY: u8 = 2;
/// The number of threads that hold the lock of dumps for the box, or try to.
static HOLDERS: AtomicU32 = AtomicU32::new(0);
/// The groups that the thread of the box has found. Hooks do not wait for the lock.
static GROUPS: Mutex<Option<MemoryGroups>> = Mutex::new(None);
/// The least number of bytes that were left of any limit at the last look.
static LEFT: AtomicU64 = AtomicU64::new(0);
/// The bytes of new large blocks since the last look.
static PROMISED: AtomicU64 = AtomicU64::new(0);
/// The least request without memory that no limit explains.
static TOO_LARGE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The time in the name of this process's first dump; `u64::MAX` before the first.
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
/// The path of the folder; null before the start. It is never freed.
static FOLDER: AtomicPtr<c_char> = AtomicPtr::new(null_mut());
/// The difference between the time since 1970 and the monotonic clock at the start, in milliseconds. The times of dumps
/// follow the monotonic clock: the other clock may be set.
static EPOCH: AtomicU64 = AtomicU64::new(0);
/// The time of the last dump for an allocator without memory, in nanoseconds; 0 before the first.
static LAST_REFUSAL: AtomicU64 = AtomicU64::new(0);
/// The time of the last dump for a large block, in nanoseconds; 0 before the first.
static LAST_LARGE: AtomicU64 = AtomicU64::new(0);
/// The dump of a thread of the program that the thread of the box does not know yet. Neither waits for the lock.
static NEW: Mutex<Option<KeptDumpName>> = Mutex::new(None);
/// Whether the reason for a missing dump was printed.
static HAS_SAID: AtomicBool = AtomicBool::new(false);

/// The bytes of the engine's heap that a dump needs: for compression, and for the list of modules.
const HEAP: usize = 1 << 20;
/// The least time between two dumps for an allocator without memory.
const BETWEEN_REFUSALS: Duration = Duration::from_secs(10);
/// How often, and after which times, a thread without memory tries to write its dump.
const TRIES: usize = 200;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// The least time between two dumps for large blocks. Programs may allocate them without ever using them.
const BETWEEN_LARGE: Duration = Duration::from_secs(60);
/// A block of at least this many bytes is compared with the rest of the limit at once.
pub(crate) const LARGE: usize = 32 << 20;
/// Growth that is always possible: of two limits, the one that this growth reaches first counts.
const LITTLE: u64 = 64 << 20;
/// The time between two searches for the memory groups: a process may be moved to another group.
const BETWEEN_SEARCHES: u64 = 10_000_000_000;
/// The time between two checks whether only engine threads are left.
const BETWEEN_CHECKS: u64 = 1_000_000_000;

/// Starts the box, if the options ask for it. The first call runs before `main`, when the loader and the C library are
/// ready.
pub(crate) fn start() {
    let setup = ENGINE.setup();
    let (Some(options), true) = (setup.options.black_box, ENGINE.records()) else { return };
    if setup.options.run != Run::Normal || (fork::is_child() && !setup.options.children) {
        return;
    }
    let _inside = Inside::deeper();
    keeping_errno(|| {
        if FOLDER.load(Ordering::Acquire).is_null() {
            let path = process::absolute(Path::new(options.folder.unwrap_or(".")));
            let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return };
            FOLDER.store(path.into_raw(), Ordering::Release);
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let milliseconds = u64::try_from(since.as_millis()).unwrap_or(0);
            EPOCH.store(milliseconds.saturating_sub(clock::nanoseconds() / 1_000_000), Ordering::Relaxed);
            say_about(folder(options));
            late_start::register(start);
        }
        let this = std::process::id();
        if PROCESS.load(Ordering::Acquire) != this {
            FIRST.store(u64::MAX, Ordering::Relaxed);
            HOLDERS.store(0, Ordering::Relaxed);
        }
        if PROCESS.swap(this, Ordering::AcqRel) != this && !background::start(&BELL, run) {
            log::say(format_args!("black box: the system starts no thread for it"));
        }
    });
}

/// The folder of the dumps; `None` if the process has no black box.
pub(crate) fn folder_path() -> Option<&'static [u8]> {
    path().map(CStr::to_bytes)
}

/// The time in the name of this process's first dump; `u64::MAX` before the first.
pub(crate) fn first_dump() -> u64 {
    let is_own = PROCESS.load(Ordering::Relaxed) == std::process::id();
    if is_own { FIRST.load(Ordering::Relaxed) } else { u64::MAX }
}

fn path() -> Option<&'static CStr> {
    let path = FOLDER.load(Ordering::Acquire);
    // SAFETY: `start` stored a string that ends in 0 and is never freed.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

fn folder(options: BlackBox) -> Option<KeptFolder> {
    path().map(|path| KeptFolder::new(path, options))
}

/// Prints what is wrong with the folder.
fn say_about(folder: Option<KeptFolder>) {
    match folder.map(|folder| (folder, folder.prepare())) {
        Some((_, Ok(false))) | None => {}
        Some((folder, Ok(true))) => log::say(format_args!(
            "black box: {folder} is in memory: dumps there count towards the limit, and a restart may lose them"
        )),
        Some((folder, Err(error))) => {
            log::say(format_args!("black box: can't write dumps to {folder}: {error}"));
        }
    }
}

/// The time since 1970 in milliseconds.
fn now() -> u64 {
    EPOCH.load(Ordering::Relaxed).saturating_add(clock::nanoseconds() / 1_000_000)
}

/// The life of the thread.
fn run() {
    let Some(options) = ENGINE.setup().options.black_box else { return };
    let is_ready = internal_alloc::write_ahead(HEAP) && reserve::prepare();
    READINESS.store(if is_ready { READY } else { WITHOUT_MEMORY }, Ordering::Release);
    if !is_ready {
        log::say(format_args!("black box: the system has no memory for its dumps"));
    }
    let mut groups = found_groups();
    let (mut searched, mut checked) = (clock::nanoseconds(), clock::nanoseconds());
    let mut trigger = DumpTrigger::new(options.near_limit);
    let mut written: Option<WrittenDump> = None;
    let mut rings = BELL.rings();
    loop {
        let now = clock::nanoseconds();
        if now.saturating_sub(searched) > BETWEEN_SEARCHES {
            (groups, searched) = (found_groups(), now);
        }
        PROMISED.store(0, Ordering::Relaxed);
        if let Some((bound, left)) = tightest_bound_and_left(groups.as_ref(), trigger.rate().max(LITTLE)) {
            LEFT.store(left, Ordering::Relaxed);
            let swapped = groups.as_ref().map_or(0, MemoryGroups::swapped);
            // The file is read only when the count matters.
            let is_high = bound.permille() > 500;
            let reclaims = groups.as_ref().filter(|_| is_high).map_or(0, MemoryGroups::reclaims);
            let look = MemoryLook { now, bound, swapped, reclaims };
            if let Some(name) = NEW.try_lock().ok().and_then(|mut new| new.take()) {
                trigger.dumped(look, 0);
                written = Some(WrittenDump::new(name, now));
            }
            if let Some(written) = &mut written {
                written.sign(options, look);
            }
            if let Some(reason) = trigger.look(look)
                && let Some(name) = dump(options, reason, bound, trigger.rate())
            {
                let took = clock::nanoseconds().saturating_sub(now);
                trigger.dumped(look, took);
                written = name.map(|name| WrittenDump::new(name, now)).or(written);
            }
        }
        BELL.wait(rings, trigger.wait());
        if confined::all_noted() {
            // A filter may end the process at the next system call.
            background::vanish();
        }
        engine_threads::pause_point();
        rings = BELL.rings();
        if now.saturating_sub(checked) > BETWEEN_CHECKS {
            checked = now;
            engine_threads::end_if_alone();
        }
    }
}

/// Searches for the groups, and shows them to hooks.
fn found_groups() -> Option<MemoryGroups> {
    let groups = MemoryGroups::find();
    if let Ok(mut known) = GROUPS.try_lock() {
        known.clone_from(&groups);
    }
    groups
}

/// The last dump of this process, which gets signs of life.
struct WrittenDump {
    name: KeptDumpName,
    at: u64,
    signed: u64,
    most_used: u64,
}

impl WrittenDump {
    fn new(name: KeptDumpName, at: u64) -> Self {
        Self { name, at, signed: 0, most_used: 0 }
    }

    /// Writes a sign of life, unless the last one is not older than a fiftieth of the dump's age.
    fn sign(&mut self, options: BlackBox, look: MemoryLook) {
        const MOST: u64 = 60_000_000_000;
        let age = look.now.saturating_sub(self.at);
        self.most_used = self.most_used.max(look.bound.used);
        if look.now.saturating_sub(self.signed) < (age / 50).min(MOST) {
            return;
        }
        self.signed = look.now;
        if let Some(folder) = folder(options) {
            folder.sign(self.name, LifeSign { milliseconds: now(), most_used: self.most_used });
        }
    }
}

/// Writes a dump. Returns `None` if another dump is being written: then this one is due at the next look. Returns
/// `Some(None)` if the dump cannot be written.
fn dump(
    options: BlackBox,
    reason: DumpReason,
    bound: MemoryBound,
    rate: u64,
) -> Option<Option<KeptDumpName>> {
    if READINESS.load(Ordering::Acquire) != READY {
        return Some(None);
    }
    while_no_other_dumps(|| write_and_say(options, reason, bound, rate))
}

/// Runs `body` with the reserve and on its stack. Returns `None` if another dump is being written.
fn while_no_other_dumps<T>(body: impl FnOnce() -> T) -> Option<T> {
    HOLDERS.fetch_add(1, Ordering::AcqRel);
    let result = ENGINE
        .dumping
        .try_hold()
        .map(|_dumping| signals::held(|| reserve::used_here(|| own_stack::run(body))));
    HOLDERS.fetch_sub(1, Ordering::AcqRel);
    result
}

fn write_and_say(
    options: BlackBox,
    reason: DumpReason,
    bound: MemoryBound,
    rate: u64,
) -> Option<KeptDumpName> {
    match write(options, reason, bound, rate) {
        Ok(name) => {
            log::mention(format_args!("black box: wrote {name}"));
            Some(name)
        }
        Err(error) => {
            if !HAS_SAID.swap(true, Ordering::Relaxed) {
                let quota = error.raw_os_error() == Some(libc::EDQUOT);
                let hint = if quota { " (max-disk leaves no room)" } else { "" };
                log::say(format_args!("black box: can't write a dump: {error}{hint}"));
            }
            None
        }
    }
}

fn write(options: BlackBox, reason: DumpReason, bound: MemoryBound, rate: u64) -> io::Result<KeptDumpName> {
    let folder = folder(options).ok_or(io::ErrorKind::NotFound)?;
    let facts = BlackBoxFacts {
        reason: reason.name(),
        bound: match bound.kind {
            BoundKind::Group => "cgroup",
            BoundKind::AddressSpace => "address-space",
            BoundKind::Machine => "machine",
        },
        limit: bound.limit,
        used: bound.used,
        rate,
        milliseconds: now(),
    };
    let name = KeptDumpName::new(facts.milliseconds, bound.used, std::process::id(), reason);
    let mut file = folder.create(name)?;
    FIRST.fetch_min(file.name().milliseconds, Ordering::Relaxed);
    dump::write_kept(&mut file, facts)?;
    let name = file.finish()?;
    // The process may end before the thread of the box writes a sign.
    folder.sign(name, LifeSign { milliseconds: now(), most_used: bound.used });
    Ok(name)
}

/// Writes a dump because the allocator has no memory for this many bytes. A hook calls this before it returns null.
#[cold]
#[inline(never)]
pub(crate) fn allocation_failed(requested: usize) {
    // No limit explains the failure of a request that never fits: programs try such sizes on purpose.
    if requested == 0 || requested >= TOO_LARGE.load(Ordering::Relaxed) {
        return;
    }
    let fits = |bound: MemoryBound| {
        let fits = requested as u64 <= bound.limit.saturating_mul(4);
        if !fits {
            TOO_LARGE.fetch_min(requested, Ordering::Relaxed);
        }
        fits
    };
    dump_in_hook(DumpReason::NoMemory, requested, &LAST_REFUSAL, BETWEEN_REFUSALS, fits);
}

/// Writes a dump if a new large block would exceed the limit: the program may write the block at once, and the thread of
/// the box may be too late. Otherwise wakes the thread. A hook calls this before it returns the block.
#[cold]
#[inline(never)]
pub(crate) fn expect_use(requested: usize) {
    // A look at the limits costs more than many blocks, so blocks that surely fit need none.
    let large = requested as u64;
    let promised = PROMISED.fetch_add(large, Ordering::Relaxed).saturating_add(large);
    let left = LEFT.load(Ordering::Relaxed);
    if promised < left / 4 {
        return;
    }
    if promised >= left / 2 {
        let exceeds = |bound: MemoryBound| bound.used.saturating_add(large) >= bound.limit;
        dump_in_hook(DumpReason::Predicted, requested, &LAST_LARGE, BETWEEN_LARGE, exceeds);
    }
    if PROCESS.load(Ordering::Relaxed) == std::process::id() && !confined::any_noted() {
        keeping_errno(|| BELL.ring());
    }
}

/// Writes a dump on the thread of the program, if `is_wanted` for the tightest bound and if the last such dump is older
/// than `pause`.
fn dump_in_hook(
    reason: DumpReason,
    requested: usize,
    last: &AtomicU64,
    pause: Duration,
    is_wanted: impl Fn(MemoryBound) -> bool,
) {
    let Some(options) = ENGINE.setup().options.black_box else { return };
    // A signal handler may have interrupted the engine, or a filter may forbid the system calls.
    if PROCESS.load(Ordering::Relaxed) != std::process::id()
        || slot().guard.is_in_engine()
        || slot().locks.get() != 0
        || confined::is_confined()
    {
        return;
    }
    let (now, then) = (clock::nanoseconds(), last.load(Ordering::Relaxed));
    if then != 0 && now.saturating_sub(then) < pause.as_nanos() as u64 {
        return;
    }
    // The program's stack may be small, so the look needs the reserve, too.
    let look_and_dump = || {
        let known = GROUPS.try_lock().ok().and_then(|groups| groups.clone());
        let groups = known.or_else(MemoryGroups::find);
        let Some((bound, left)) = tightest_bound_and_left(groups.as_ref(), requested as u64) else { return };
        LEFT.store(left, Ordering::Relaxed);
        PROMISED.store(requested as u64, Ordering::Relaxed);
        if is_wanted(bound)
            && last.compare_exchange(then, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            && let Some(name) = write_and_say(options, reason, bound, 0)
            && let Ok(mut new) = NEW.try_lock()
        {
            *new = Some(name);
        }
    };
    keeping_errno(|| {
        let _inside = Inside::deeper();
        // The program may end as soon as this function returns, so another dump of the box comes first. At the start of
        // the process, the thread of the box may still be preparing. A dump that the program requested may take long,
        // and the thread of the program may hold a lock.
        for _ in 0..TRIES {
            match READINESS.load(Ordering::Acquire) {
                READY if while_no_other_dumps(look_and_dump).is_some() => return,
                READY if HOLDERS.load(Ordering::Acquire) == 0 => return,
                WITHOUT_MEMORY => return,
                _ => std::thread::sleep(BETWEEN_TRIES),
            }
        }
    });
}
