//! Memory pressure: calls the program's hooks, and releases the allocator's free pages.

use core::cell::Cell;
use core::fmt;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use super::near_limit;
use crate::allocator::declared;
use crate::platform;
use crate::process_lock::ProcessLock;
use crate::reporting::isolation;
use crate::watching::{Collector, CycleProgress, WatchedCollector};

pub use super::near_limit::{NearLimitRegistration, PressureRelief};

type PressureCallback = dyn Fn() + Send + Sync;

std::thread_local! {
    /// Whether this thread is running the hooks.
    static MINIMIZING: Cell<bool> = const { Cell::new(false) };
}

static HOOKS: ProcessLock<Vec<Arc<PressureCallback>>> = ProcessLock::new(Vec::new());

/// Keeps a memory-pressure hook registered; dropping it removes the hook.
#[must_use = "dropping this value removes the hook; to keep the hook, call `forever`"]
pub struct PressureHook {
    hook: Arc<PressureCallback>,
}

/// Registers `hook`. Each time memory usage is minimized, the hook runs; it should drop caches and shrink buffers.
///
/// The function corresponds to Firefox's observer topic `memory-pressure` with data `heap-minimize`.
pub fn on_memory_pressure(hook: impl Fn() + Send + Sync + 'static) -> PressureHook {
    let hook: Arc<PressureCallback> = Arc::new(hook);
    HOOKS.lock().push(Arc::clone(&hook));
    PressureHook { hook }
}

impl PressureHook {
    /// Keeps the hook until the program ends.
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl Drop for PressureHook {
    fn drop(&mut self) {
        let mut hooks = HOOKS.lock();
        hooks.retain(|hook| !Arc::ptr_eq(hook, &self.hook));
    }
}

impl fmt::Debug for PressureHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PressureHook")
    }
}

/// Runs the memory-pressure hooks three times, since a hook may allow another hook to free more memory. Then lets the
/// allocator return unused pages to the system. If a hook panics, the other hooks still run. If a hook calls this
/// function, the call does nothing.
///
/// The call is a cycle of the collector [`MemoryPressure`], with the reason `"MEM_PRESSURE"`. The callbacks of
/// [`on_garbage_collection`](crate::watching::on_garbage_collection) receive the cycle, with a slice for each of the
/// three rounds and one for the allocator.
///
/// Source: `nsMemoryReporterManager::MinimizeMemoryUsage` of Firefox.
pub fn minimize_memory_usage() {
    if MINIMIZING.get() {
        return;
    }
    let mut pressure = WatchedCollector::new(MemoryPressure::new());
    while pressure.slice("MEM_PRESSURE") == CycleProgress::Unfinished {}
}

/// Starts a thread that calls [`minimize_memory_usage`] when this process has used `percent` of the limit of its memory:
/// of its memory groups (cgroups), its address space or the machine. `log` receives the effect each time.
///
/// Choose a lower share than that of DMD's black box, which writes a dump near the limit: hooks that free enough memory
/// then make the dump unnecessary. If the use stays above the share, the hooks run once a minute. The calls end when the
/// registration is dropped. The child of a fork has no such thread.
///
/// # Errors
///
/// Returns [`InvalidInput`](io::ErrorKind::InvalidInput) if `percent` is not 1 to 99,
/// [`Unsupported`](io::ErrorKind::Unsupported) if the system shows no limit, and the error of starting the thread.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// memory_reporter::pressure::minimize_near_limit(80, |relief| eprintln!("{relief}"))?.forever();
/// # Ok(())
/// # }
/// ```
pub fn minimize_near_limit(
    percent: u8,
    log: impl Fn(&PressureRelief) + Send + Sync + 'static,
) -> io::Result<NearLimitRegistration> {
    near_limit::start(percent, minimize_memory_usage, Box::new(log))
}

/// The number of times that a cycle runs the hooks.
const ROUNDS: u8 = 3;

/// Memory pressure as a collector. A cycle has four slices. Each of the first three slices runs the memory-pressure
/// hooks once, and the last slice lets the allocator return unused pages.
///
/// With slices, a program can spread the work of [`minimize_memory_usage`] over time:
///
/// ```
/// use memory_reporter::{pressure::MemoryPressure, watching::{CycleProgress, WatchedCollector}};
///
/// let mut pressure = WatchedCollector::new(MemoryPressure::new());
/// assert_eq!(pressure.slice("INTER_SLICE_GC"), CycleProgress::Unfinished);
/// pressure.collect("API"); // the remaining slices
/// ```
#[derive(Debug, Default)]
pub struct MemoryPressure {
    rounds: u8,
}

impl MemoryPressure {
    /// A collector without an unfinished cycle.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Collector for MemoryPressure {
    fn name(&self) -> Cow<'static, str> {
        "memory-pressure".into()
    }

    /// Returns without work if the call is inside of a hook.
    fn slice(&mut self) -> CycleProgress {
        if MINIMIZING.get() {
            return CycleProgress::Idle;
        }
        if self.rounds < ROUNDS {
            run_hooks();
            self.rounds += 1;
            return CycleProgress::Unfinished;
        }
        purge();
        self.rounds = 0;
        CycleProgress::Finished
    }

    fn finish(&mut self) {
        while self.slice() == CycleProgress::Unfinished {}
    }
}

/// A collector for the declared allocator and the C library's allocator. Its only slice lets both return unused pages
/// to the system.
#[derive(Debug, Default)]
pub struct AllocatorPurge;

impl Collector for AllocatorPurge {
    fn name(&self) -> Cow<'static, str> {
        "allocator".into()
    }

    fn slice(&mut self) -> CycleProgress {
        purge();
        CycleProgress::Finished
    }

    fn finish(&mut self) {
        purge();
    }
}

/// Runs each hook once. The caller must not be inside of a hook.
fn run_hooks() {
    MINIMIZING.set(true);
    let hooks = HOOKS.lock().clone();
    for hook in hooks {
        // The panic hook has already reported a panic, and this function returns no result.
        let _ = isolation::contain(|| hook());
        // If the program has removed the hook meanwhile, this call drops the hook.
        let _ = isolation::discard(hook);
    }
    MINIMIZING.set(false);
}

fn purge() {
    if let Some(allocator) = declared() {
        allocator.purge();
    }
    platform::trim_c_heap();
}
