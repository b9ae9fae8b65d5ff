//! Cycles of garbage collectors, and the callbacks that receive them.
//!
//! Invariant: a callback runs on the thread that ended the cycle, while this module holds no lock. A panic of a
//! callback does not leave this module.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::borrow::Cow;
use std::sync::Arc;

use memory_report::json::push_string;

use super::clock;
use crate::process_lock::ProcessLock;
use crate::reporting::isolation;

/// The statistics of one cycle of a garbage collector, like Firefox's object of
/// `Debugger.Memory.onGarbageCollection`.
///
/// Firefox has no field `collector`, since it has only one collector.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GarbageCollection {
    /// The name of the collector, such as `"gc-arena"` or `"memory-pressure"`.
    pub collector: Cow<'static, str>,
    /// The slices of the cycle, in order. The program may run between two slices.
    pub collections: Vec<GarbageCollectionSlice>,
    /// A short text with the reason why the cycle started, such as `"API"` or `"ALLOC_TRIGGER"`.
    pub reason: Cow<'static, str>,
    /// A short text with the reason why the collector did all the work at once, such as `"requested"`; `None` if it
    /// worked in slices. (Firefox's documentation promises `null` in this case; Firefox returns `"None"`.)
    pub nonincremental_reason: Option<Cow<'static, str>>,
    /// The number of the cycle. The cycles of the process are numbered from 1, in the order in which they end.
    pub gc_cycle_number: u64,
}

/// One slice of a cycle. Its times are in milliseconds since the process started. Linux provides the start time in
/// hundredths of a second, so all time stamps of a process may be off by the same amount, up to 10 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GarbageCollectionSlice {
    /// The time at which the slice started.
    pub start_timestamp: f64,
    /// The time at which the slice ended.
    pub end_timestamp: f64,
}

impl GarbageCollection {
    /// The object as JSON, with Firefox's names and order, followed by `collector`.
    pub fn to_json(&self) -> String {
        let mut json = String::from("{\"nonincrementalReason\":");
        match &self.nonincremental_reason {
            Some(reason) => push_string(&mut json, reason),
            None => json.push_str("null"),
        }
        json.push_str(",\"reason\":");
        push_string(&mut json, &self.reason);
        json.push_str(&format!(",\"gcCycleNumber\":{},\"collections\":[", self.gc_cycle_number));
        for (at, slice) in self.collections.iter().enumerate() {
            let GarbageCollectionSlice { start_timestamp, end_timestamp } = slice;
            let comma = if at == 0 { "" } else { "," };
            json.push_str(&format!(
                "{comma}{{\"startTimestamp\":{start_timestamp},\"endTimestamp\":{end_timestamp}}}"
            ));
        }
        json.push_str("],\"collector\":");
        push_string(&mut json, &self.collector);
        json.push('}');
        json
    }
}

/// The largest number of slices that a cycle lists. Further slices extend the last listed slice.
const MOST_SLICES: usize = 10_000;

/// An open cycle of a collector. A collector that does not implement [`Collector`](super::Collector) describes its work
/// with this type.
///
/// Dropping a cycle without [`end`](Self::end) discards it: no callback receives it.
///
/// ```
/// use memory_reporter::watching::GarbageCollectionCycle;
///
/// let mut cycle = GarbageCollectionCycle::begin("interner", "ALLOC_TRIGGER");
/// let freed = cycle.slice(|| 2 + 2);
/// let statistics = cycle.end();
/// assert_eq!((freed, statistics.collections.len()), (4, 1));
/// ```
#[derive(Debug)]
#[must_use = "callbacks run only when the cycle ends: call `end`"]
pub struct GarbageCollectionCycle {
    collector: Cow<'static, str>,
    reason: Cow<'static, str>,
    nonincremental_reason: Option<Cow<'static, str>>,
    slices: Vec<GarbageCollectionSlice>,
}

impl GarbageCollectionCycle {
    /// Starts a cycle of the collector with this name, for this reason.
    pub fn begin(collector: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            collector: collector.into(),
            reason: reason.into(),
            nonincremental_reason: None,
            slices: Vec::new(),
        }
    }

    /// Runs a slice and records its times, even if the slice panics.
    pub fn slice<T>(&mut self, work: impl FnOnce() -> T) -> T {
        struct SliceTimer<'a>(&'a mut GarbageCollectionCycle, f64);
        impl Drop for SliceTimer<'_> {
            fn drop(&mut self) {
                self.0.ran(self.1, clock::now());
            }
        }
        let _timed = SliceTimer(self, clock::now());
        work()
    }

    /// Adds a slice that has already run.
    pub(super) fn ran(&mut self, start_timestamp: f64, end_timestamp: f64) {
        if self.slices.len() < MOST_SLICES {
            self.slices.push(GarbageCollectionSlice { start_timestamp, end_timestamp });
        } else if let Some(last) = self.slices.last_mut() {
            last.end_timestamp = end_timestamp;
        }
    }

    /// Sets the reason why the collector does all the work of the cycle at once.
    pub fn nonincremental(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.nonincremental_reason = Some(reason.into());
    }

    /// Ends the cycle, and runs the callbacks of [`on_garbage_collection`] on this thread.
    ///
    /// A cycle that ends inside of a callback does not run callbacks.
    pub fn end(self) -> GarbageCollection {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let statistics = GarbageCollection {
            collector: self.collector,
            collections: self.slices,
            reason: self.reason,
            nonincremental_reason: self.nonincremental_reason,
            gc_cycle_number: NUMBER.fetch_add(1, Ordering::Relaxed),
        };
        call_back(&statistics);
        statistics
    }
}

type CycleCallback = dyn Fn(&GarbageCollection) + Send + Sync;

std::thread_local! {
    /// Whether this thread is running callbacks.
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

static CALLBACKS: ProcessLock<Vec<Arc<CycleCallback>>> = ProcessLock::new(Vec::new());

/// Keeps a callback of [`on_garbage_collection`] registered; dropping it removes the callback.
#[must_use = "dropping this value removes the callback; to keep the callback, call `forever`"]
pub struct GarbageCollectionHook {
    callback: Arc<CycleCallback>,
}

/// Calls `callback` with the statistics of each finished cycle of a garbage collector in this process. This includes
/// the cycles of each [`WatchedCollector`](super::WatchedCollector), each [`GarbageCollectionCycle`] that ends, and
/// each call of [`minimize_memory_usage`](crate::pressure::minimize_memory_usage).
///
/// `callback` runs on the thread that ended the cycle. If it panics, other callbacks still run.
///
/// Source: `Debugger.Memory.onGarbageCollection` of Firefox, which calls back from the event loop.
pub fn on_garbage_collection(
    callback: impl Fn(&GarbageCollection) + Send + Sync + 'static,
) -> GarbageCollectionHook {
    let callback: Arc<CycleCallback> = Arc::new(callback);
    CALLBACKS.lock().push(Arc::clone(&callback));
    GarbageCollectionHook { callback }
}

fn call_back(statistics: &GarbageCollection) {
    if CALLING.replace(true) {
        return;
    }
    let callbacks = CALLBACKS.lock().clone();
    for callback in callbacks {
        // The panic hook has already reported a panic, and this function returns no result.
        let _ = isolation::contain(|| callback(statistics));
        // If the program has removed the callback meanwhile, this call drops the callback.
        let _ = isolation::discard(callback);
    }
    CALLING.set(false);
}

impl GarbageCollectionHook {
    /// Keeps the callback until the program ends.
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl Drop for GarbageCollectionHook {
    fn drop(&mut self) {
        let mut callbacks = CALLBACKS.lock();
        callbacks.retain(|callback| !Arc::ptr_eq(callback, &self.callback));
    }
}

impl fmt::Debug for GarbageCollectionHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GarbageCollectionHook")
    }
}
