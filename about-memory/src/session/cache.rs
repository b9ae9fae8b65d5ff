//! The task cache: equal requests share one computation, and results stay under a budget of bytes.
//!
//! A computation is cancelled when no front end waits for it. The lock of the cache also guards the number of waiting
//! front ends, so that no front end can join a computation while it is being cancelled.

use core::hash::Hash;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heap_graph::AnalysisProgress;

use super::error::SessionError;
use super::id::JobId;

/// How often a waiting thread checks whether it must stop.
const LOOK: Duration = Duration::from_millis(20);

type TaskOutcome<V> = Result<Arc<V>, SessionError>;

/// A computation that runs, or that has ended and is still referenced.
#[derive(Debug)]
pub(super) struct RunningTask<V> {
    pub(super) job: JobId,
    pub(super) progress: AnalysisProgress,
    outcome: Mutex<Option<TaskOutcome<V>>>,
    ended: Condvar,
}

impl<V> RunningTask<V> {
    /// Returns the outcome, or `None` if the computation does not end within `timeout`.
    pub(super) fn wait(&self, timeout: Duration) -> Option<TaskOutcome<V>> {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(outcome, timeout, |outcome| outcome.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Waits for the outcome on behalf of another computation. The wait ends when that computation is cancelled.
    pub(super) fn wait_for(&self, other: &AnalysisProgress) -> TaskOutcome<V> {
        loop {
            if let Some(outcome) = self.wait(LOOK) {
                return outcome;
            }
            if other.is_cancelled() {
                return Err(SessionError::Cancelled);
            }
        }
    }
}

#[derive(Debug)]
enum CacheSlot<V> {
    Running { task: Arc<RunningTask<V>>, waiting: usize },
    Done { value: Arc<V>, bytes: usize, used: u64 },
}

#[derive(Debug)]
struct CacheSlots<K, V> {
    by_key: HashMap<K, CacheSlot<V>>,
    bytes: usize,
    clock: u64,
}

/// A cache of results and running computations.
#[derive(Debug)]
pub(super) struct TaskCache<K, V> {
    slots: Mutex<CacheSlots<K, V>>,
    budget: AtomicUsize,
}

/// The state of a key in the cache, after the caller has joined.
#[derive(Debug)]
pub(super) enum CacheEntry<V> {
    /// The result.
    Done(Arc<V>),
    /// A computation that the caller has joined.
    Running(Arc<RunningTask<V>>),
    /// A new computation. The caller has joined it and runs it.
    New(Arc<RunningTask<V>>),
}

impl<K: Clone + Eq + Hash, V> TaskCache<K, V> {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            slots: Mutex::new(CacheSlots { by_key: HashMap::new(), bytes: 0, clock: 0 }),
            budget: AtomicUsize::new(budget),
        }
    }

    fn slots(&self) -> MutexGuard<'_, CacheSlots<K, V>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a result or joins a running computation. If the cache has neither for this key, adds a new computation.
    pub(super) fn join(&self, key: &K, new: impl FnOnce() -> JobId) -> CacheEntry<V> {
        let mut slots = self.slots();
        slots.clock += 1;
        let now = slots.clock;
        match slots.by_key.get_mut(key) {
            Some(CacheSlot::Done { value, used, .. }) => {
                *used = now;
                CacheEntry::Done(Arc::clone(value))
            }
            // A cancelled computation cannot answer a new request.
            Some(CacheSlot::Running { task, waiting }) if !task.progress.is_cancelled() => {
                *waiting += 1;
                CacheEntry::Running(Arc::clone(task))
            }
            Some(CacheSlot::Running { .. }) | None => {
                let task = Arc::new(RunningTask {
                    job: new(),
                    progress: AnalysisProgress::new(),
                    outcome: Mutex::new(None),
                    ended: Condvar::new(),
                });
                slots.by_key.insert(key.clone(), CacheSlot::Running { task: Arc::clone(&task), waiting: 1 });
                CacheEntry::New(task)
            }
        }
    }

    /// Ends the wait of one caller. Cancels the computation if no other caller waits.
    pub(super) fn leave(&self, key: &K, task: &Arc<RunningTask<V>>) {
        let mut slots = self.slots();
        if let Some(CacheSlot::Running { task: present, waiting }) = slots.by_key.get_mut(key)
            && Arc::ptr_eq(present, task)
        {
            *waiting -= 1;
            if *waiting == 0 {
                task.progress.cancel();
                slots.by_key.remove(key);
            }
        }
    }

    /// Ends a computation. Its result stays in the cache, unless the computation was cancelled.
    pub(super) fn finish(
        &self,
        key: &K,
        task: &Arc<RunningTask<V>>,
        outcome: Result<(V, usize), SessionError>,
    ) {
        let mut slots = self.slots();
        let is_present = matches!(slots.by_key.get(key),
            Some(CacheSlot::Running { task: present, .. }) if Arc::ptr_eq(present, task));
        let outcome = outcome.map(|(value, bytes)| (Arc::new(value), bytes));
        if is_present {
            slots.by_key.remove(key);
            if let Ok((value, bytes)) = &outcome {
                slots.clock += 1;
                let used = slots.clock;
                slots.bytes += bytes;
                slots
                    .by_key
                    .insert(key.clone(), CacheSlot::Done { value: Arc::clone(value), bytes: *bytes, used });
                slots.evict(self.budget());
            }
        }
        drop(slots);
        *task.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome.map(|(value, _)| value));
        task.ended.notify_all();
    }

    /// Removes all keys that `is_gone` accepts, and cancels their computations.
    pub(super) fn forget(&self, is_gone: impl Fn(&K) -> bool) {
        let mut slots = self.slots();
        let mut freed = 0;
        slots.by_key.retain(|key, slot| {
            if !is_gone(key) {
                return true;
            }
            match slot {
                CacheSlot::Running { task, .. } => task.progress.cancel(),
                CacheSlot::Done { bytes, .. } => freed += *bytes,
            }
            false
        });
        slots.bytes -= freed;
    }

    /// Returns the budget: the maximum number of bytes of all results. The newest result stays even if it alone is
    /// larger.
    pub(super) fn budget(&self) -> usize {
        self.budget.load(Ordering::Relaxed)
    }

    /// Raises the budget to at least this many bytes.
    pub(super) fn raise_budget(&self, bytes: usize) {
        self.budget.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes of all results.
    pub(super) fn bytes(&self) -> usize {
        self.slots().bytes
    }
}

impl<K: Clone + Eq + Hash, V> CacheSlots<K, V> {
    /// Drops the least recently used results until the remaining results are within the budget. The newest result
    /// stays.
    fn evict(&mut self, budget: usize) {
        while self.bytes > budget {
            let age = |slot: &CacheSlot<V>| match slot {
                CacheSlot::Done { used, .. } => Some(*used),
                CacheSlot::Running { .. } => None,
            };
            let oldest = self.by_key.iter().filter_map(|(key, slot)| Some((age(slot)?, key)));
            let Some((used, key)) = oldest.min_by_key(|(used, _)| *used) else { break };
            if used == self.clock {
                break;
            }
            let key = key.clone();
            if let Some(CacheSlot::Done { bytes, .. }) = self.by_key.remove(&key) {
                self.bytes -= bytes;
            }
        }
    }
}
