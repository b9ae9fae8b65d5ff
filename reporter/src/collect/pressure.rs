//! Memory pressure: the program's own hooks, and the allocator's free pages.

use core::cell::Cell;
use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

use crate::allocator::declared;
use crate::platform;
use crate::process_lock::ProcessLock;
use crate::reporting::isolation;
use crate::watching::{Collector, CycleProgress, WatchedCollector};

type PressureCallback = dyn Fn() + Send + Sync;

std::thread_local! {
    /// This thread runs the hooks.
    static MINIMIZING: Cell<bool> = const { Cell::new(false) };
}

static HOOKS: ProcessLock<Vec<Arc<PressureCallback>>> = ProcessLock::new(Vec::new());

/// Keeps a memory-pressure hook; dropping it removes the hook.
#[must_use = "dropping it removes the hook; `forever` keeps it"]
pub struct PressureHook {
    hook: Arc<PressureCallback>,
}

/// Calls `hook` whenever memory usage is minimized; the hook drops caches and shrinks buffers.
///
/// Firefox's observer topic `memory-pressure` with data `heap-minimize`.
pub fn on_memory_pressure(hook: impl Fn() + Send + Sync + 'static) -> PressureHook {
    let hook: Arc<PressureCallback> = Arc::new(hook);
    HOOKS.lock().push(Arc::clone(&hook));
    PressureHook { hook }
}

impl PressureHook {
    /// Keeps the hook until the program ends.
    #[allow(clippy::mem_forget, reason = "never to end is what is asked for")]
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

/// Runs the memory-pressure hooks three times, since one may allow another to free more, and then lets the allocator
/// return unused pages to the system. If a hook panics, the others still run; if a hook calls this function, the call
/// does nothing.
///
/// It is a cycle of the collector [`MemoryPressure`], for the reason `"MEM_PRESSURE"`: the callbacks of
/// [`on_garbage_collection`](crate::watching::on_garbage_collection) learn of it, with a slice for each of the three rounds and
/// one for the allocator.
///
/// Source: `nsMemoryReporterManager::MinimizeMemoryUsage` of Firefox.
pub fn minimize_memory_usage() {
    if MINIMIZING.get() {
        return;
    }
    let mut pressure = WatchedCollector::new(MemoryPressure::new());
    while pressure.slice("MEM_PRESSURE") == CycleProgress::Unfinished {}
}

/// How often a cycle runs the hooks.
const ROUNDS: u8 = 3;

/// Memory pressure as a collector: a slice runs the memory-pressure hooks once, and the last of four lets the allocator
/// return unused pages.
///
/// Slice by slice, a program does some of the work of [`minimize_memory_usage`] at a time:
///
/// ```
/// use memory_reporter::{pressure::MemoryPressure, watching::{CycleProgress, WatchedCollector}};
///
/// let mut pressure = WatchedCollector::new(MemoryPressure::new());
/// assert_eq!(pressure.slice("INTER_SLICE_GC"), CycleProgress::Unfinished);
/// pressure.collect("API"); // the rest
/// ```
#[derive(Debug, Default)]
pub struct MemoryPressure {
    rounds: u8,
}

impl MemoryPressure {
    /// Memory pressure without an open cycle.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Collector for MemoryPressure {
    fn name(&self) -> Cow<'static, str> {
        "memory-pressure".into()
    }

    /// Idle inside of a hook.
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

/// The declared allocator and the C library's as a collector: its only slice lets both return unused pages to the
/// system.
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

/// Runs each hook once. The caller is not inside of one.
fn run_hooks() {
    MINIMIZING.set(true);
    let hooks = HOOKS.lock().clone();
    for hook in hooks {
        // The panic hook has reported a panic; this function has no result for it.
        let _ = isolation::contain(|| hook());
        // If the hook was removed meanwhile, this is its last owner.
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
