//! Collectors: code that reclaims memory in cycles.

use core::ops::{Deref, DerefMut};
use std::borrow::Cow;

use super::clock;
use super::cycle::GarbageCollectionCycle;

/// The state of a collector after a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a collector is in one of these states")]
pub enum CycleProgress {
    /// No cycle was open, and the collector did not start one.
    Idle,
    /// The cycle is open and needs more slices.
    Unfinished,
    /// The slice was the last slice of its cycle.
    Finished,
}

/// Code that frees memory in cycles: a garbage collector, a cache that evicts, an allocator that returns pages.
///
/// A program implements it for its own collector. [`WatchedCollector`] runs the slices, and passes each cycle to
/// [`on_garbage_collection`](super::on_garbage_collection). The feature `gc-arena07` implements it for
/// `gc_arena::Arena`.
pub trait Collector {
    /// The name of the collector in statistics.
    fn name(&self) -> Cow<'static, str>;

    /// Does a bounded part of the work: the next slice of the open cycle, or the first slice of a new cycle. Ends at
    /// most one cycle.
    fn slice(&mut self) -> CycleProgress;

    /// Finishes the open cycle, or runs a whole cycle if none is open.
    fn finish(&mut self);
}

/// A collector whose cycles call the callbacks of [`on_garbage_collection`](super::on_garbage_collection).
///
/// The wrapper dereferences to the collector. Statistics do not include work that the program starts on the collector
/// directly.
///
/// ```
/// use memory_reporter::watching::{Collector, CycleProgress, WatchedCollector, on_garbage_collection};
/// use std::borrow::Cow;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// /// Frees a hundred texts in each slice.
/// struct Texts(Vec<String>);
///
/// impl Collector for Texts {
///     fn name(&self) -> Cow<'static, str> {
///         "texts".into()
///     }
///
///     fn slice(&mut self) -> CycleProgress {
///         if self.0.is_empty() {
///             return CycleProgress::Idle;
///         }
///         self.0.truncate(self.0.len().saturating_sub(100));
///         if self.0.is_empty() { CycleProgress::Finished } else { CycleProgress::Unfinished }
///     }
///
///     fn finish(&mut self) {
///         self.0.clear();
///     }
/// }
///
/// static SLICES: AtomicUsize = AtomicUsize::new(0);
/// let _hook = on_garbage_collection(|cycle| {
///     SLICES.fetch_add(cycle.collections.len(), Ordering::Relaxed);
/// });
///
/// let mut texts = WatchedCollector::new(Texts(vec![String::new(); 250]));
/// while texts.slice("ALLOC_TRIGGER") == CycleProgress::Unfinished {}
/// assert_eq!(SLICES.load(Ordering::Relaxed), 3);
/// ```
#[derive(Debug)]
pub struct WatchedCollector<C> {
    collector: C,
    cycle: Option<GarbageCollectionCycle>,
}

impl<C: Collector> WatchedCollector<C> {
    /// Wraps a collector, to watch its cycles.
    pub fn new(collector: C) -> Self {
        Self { collector, cycle: None }
    }

    /// Runs a slice. If the slice starts a cycle, `reason` becomes the reason of the cycle.
    pub fn slice(&mut self, reason: impl Into<Cow<'static, str>>) -> CycleProgress {
        let start = clock::now();
        let progress = self.collector.slice();
        if progress == CycleProgress::Idle {
            return progress;
        }
        self.open(reason).ran(start, clock::now());
        if progress == CycleProgress::Finished {
            self.end();
        }
        progress
    }

    /// Finishes the open cycle, or runs a whole cycle with this reason. The statistics contain `"requested"` as the
    /// reason why the work was not incremental.
    pub fn collect(&mut self, reason: impl Into<Cow<'static, str>>) {
        let start = clock::now();
        self.collector.finish();
        let cycle = self.open(reason);
        cycle.ran(start, clock::now());
        cycle.nonincremental("requested");
        self.end();
    }

    /// Returns the collector. Drops an open cycle without a callback.
    pub fn into_inner(self) -> C {
        self.collector
    }

    fn open(&mut self, reason: impl Into<Cow<'static, str>>) -> &mut GarbageCollectionCycle {
        let collector = &self.collector;
        self.cycle.get_or_insert_with(|| GarbageCollectionCycle::begin(collector.name(), reason))
    }

    fn end(&mut self) {
        if let Some(cycle) = self.cycle.take() {
            cycle.end();
        }
    }
}

impl<C> Deref for WatchedCollector<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.collector
    }
}

impl<C> DerefMut for WatchedCollector<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.collector
    }
}
