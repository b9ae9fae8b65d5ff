//! Memory pressure: the program's own hooks, and the allocator's free pages.

use core::cell::Cell;
use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::allocator::declared;
use crate::isolation;
use crate::platform;

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

/// Has `hook` called whenever memory usage is to be minimized: drop caches, shrink buffers.
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

/// Runs the memory-pressure hooks three times, since what one frees may let another free more,
/// and then has the allocator give unused pages back. A hook that panics does not keep the others
/// from running; one that minimizes memory usage itself does nothing by that.
///
/// Source: `nsMemoryReporterManager::MinimizeMemoryUsage` of Firefox.
pub fn minimize_memory_usage() {
    if MINIMIZING.replace(true) {
        return;
    }
    for _ in 0..3 {
        let hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for hook in hooks {
            // The panic hook has said what went wrong, and there is nobody to hand it to.
            let _ = isolation::contain(|| hook());
            // It was the last to hold the hook if that was removed meanwhile.
            let _ = isolation::discard(hook);
        }
    }
    MINIMIZING.set(false);
    if let Some(allocator) = declared() {
        allocator.purge();
    }
    platform::trim_c_heap();
}
