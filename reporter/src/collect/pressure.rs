//! Memory pressure: the program's own hooks, and the allocator's free pages.

use core::cell::Cell;
use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::allocator::declared;
use crate::platform;
use crate::reporting::isolation;

type Hook = dyn Fn() + Send + Sync;

std::thread_local! {
    /// This thread runs the hooks.
    static MINIMIZING: Cell<bool> = const { Cell::new(false) };
}

static HOOKS: Mutex<Vec<Arc<Hook>>> = Mutex::new(Vec::new());

/// Keeps a memory-pressure hook; dropping it removes the hook.
#[must_use = "dropping it removes the hook"]
pub struct PressureHook {
    hook: Arc<Hook>,
}

/// Calls `hook` whenever memory usage is minimized; the hook drops caches and shrinks buffers.
///
/// Firefox's observer topic `memory-pressure` with data `heap-minimize`.
pub fn on_memory_pressure(hook: impl Fn() + Send + Sync + 'static) -> PressureHook {
    let hook: Arc<Hook> = Arc::new(hook);
    HOOKS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&hook));
    PressureHook { hook }
}

impl Drop for PressureHook {
    fn drop(&mut self) {
        let mut hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner);
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
/// Source: `nsMemoryReporterManager::MinimizeMemoryUsage` of Firefox.
pub fn minimize_memory_usage() {
    if MINIMIZING.replace(true) {
        return;
    }
    for _ in 0..3 {
        let hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for hook in hooks {
            // The panic hook has reported a panic, and there is no result to put it into.
            let _ = isolation::contain(|| hook());
            // If the hook was removed meanwhile, this is its last owner.
            let _ = isolation::discard(hook);
        }
    }
    MINIMIZING.set(false);
    if let Some(allocator) = declared() {
        allocator.purge();
    }
    platform::trim_c_heap();
}
