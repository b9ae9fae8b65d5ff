//! An observer of allocations, like Firefox's `Debugger.Memory` of one `Debugger`.

use core::fmt::{self, Write as _};
use std::collections::HashMap;
use std::sync::Arc;

use memory_report::json::push_string;

use super::clock;
use super::cycle::{GarbageCollection, GarbageCollectionHook, on_garbage_collection};
use super::described::{ClassFinder, ClassName, KeepsNotes};
use super::nursery::NurseryLookup;
use super::saved_stack::SavedStack;
use crate::engine_abi::{self, AllocationLog, BlockRow, LogLimits, LogState, NoLog};
use crate::process_lock::{ProcessGuard, ProcessLock};
use crate::reporting::isolation;

/// Watches the allocations of this process, like Firefox's `Debugger.Memory`, with its names and defaults.
///
/// DMD must record the process: the program declares `dmd::Dmd` as its allocator and runs with `$DMD` set, or it runs
/// under `libdmd.so`. A program may have several observers, each with its own log. Any thread may use an observer.
///
/// The log contains the heap blocks that DMD records, of all threads and languages. (Firefox logs only objects of
/// JavaScript, not strings.) With DMD's option `--sample-below`, the log lacks the small blocks that DMD does not
/// record.
///
/// # Differences from Firefox
///
/// - If several observers have different sampling probabilities, Firefox applies the largest probability to all logs.
///   Here each log has its own probability. One random number is drawn for an allocation, and each log whose
///   probability is above that number gets the allocation. So a log with a smaller probability contains a part of the
///   entries of a log with a larger probability.
/// - The random numbers have a fixed seed, so that a program with one thread logs the same allocations in each run.
/// - A limit or probability of a wrong type does not compile; Firefox converts texts and `null`.
/// - `frame` is `None` if DMD recorded no stack. `class` is `None` if neither the program nor the stack contains a
///   type.
/// - An entry also contains the block's address and requested bytes.
/// - Disabling tracking also clears `allocations_log_overflowed`.
/// - Handlers run on the collector's thread, before the call that ends the cycle returns, not later from an event loop.
///   The handler from [`set_uncaught_exception_handler`](Self::set_uncaught_exception_handler) receives their panics.
///   Each observer has its own handler of this kind.
#[derive(Debug, Default)]
pub struct MemoryObserver {
    state: Arc<ProcessLock<ObserverState>>,
}

/// An observer calls this function after each garbage collection. The first argument is the observer, like `this` in
/// Firefox's `onGarbageCollection`.
pub type GarbageCollectionHandler = dyn Fn(&MemoryObserver, &GarbageCollection) + Send + Sync;

/// An observer calls this function when its [`GarbageCollectionHandler`] panics, like Firefox's
/// `uncaughtExceptionHandler`. The arguments are the observer and the text of the panic.
pub type UncaughtExceptionHandler = dyn Fn(&MemoryObserver, &str) + Send + Sync;

struct ObserverState {
    limits: LogLimits,
    /// The open log, while allocation sites are tracked.
    log: Option<(AllocationLog, KeepsNotes)>,
    on_garbage_collection: Option<(Arc<GarbageCollectionHandler>, GarbageCollectionHook)>,
    uncaught_exception: Option<Arc<UncaughtExceptionHandler>>,
}

impl fmt::Debug for ObserverState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limits, log, on_garbage_collection, uncaught_exception } = self;
        f.debug_struct("ObserverState")
            .field("limits", limits)
            .field("log", log)
            .field("on_garbage_collection", &on_garbage_collection.is_some())
            .field("uncaught_exception", &uncaught_exception.is_some())
            .finish()
    }
}

impl Default for ObserverState {
    fn default() -> Self {
        Self {
            limits: LogLimits { probability: 1.0, length: 5000 },
            log: None,
            on_garbage_collection: None,
            uncaught_exception: None,
        }
    }
}

/// An entry of an allocations log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AllocationsLogEntry {
    /// The time of the allocation, in milliseconds since the process started.
    pub timestamp: f64,
    /// The stack that allocated the block; `None` if DMD recorded no stack.
    pub frame: Option<SavedStack>,
    /// The class that the program set with [`describe_block`](super::describe_block), or otherwise the Rust type that
    /// the stack contains. `None` if both are unknown.
    pub class: Option<ClassName>,
    /// The bytes that the program can use.
    pub size: u64,
    /// Whether the block belongs to an arena that the program registered with
    /// [`register_nursery`](super::register_nursery).
    pub in_nursery: bool,
    /// The bytes that the program requested.
    pub requested: u64,
    /// The address of the block. The program may have freed the block since.
    pub address: usize,
}

impl AllocationsLogEntry {
    /// The entry as JSON, with Firefox's names and order, followed by `requested`. The stack is an array of frames.
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.push_json(self.frame.as_ref().map(SavedStack::to_json).as_deref(), &mut json);
        json
    }

    /// Appends the entry, with this text for its stack.
    pub(crate) fn push_json(&self, stack: Option<&str>, json: &mut String) {
        json.push_str("{\"frame\":");
        json.push_str(stack.unwrap_or("null"));
        // Writing to a string cannot fail.
        let _ = write!(json, ",\"timestamp\":{},\"class\":", self.timestamp);
        match &self.class {
            Some(class) => push_string(json, class.as_str()),
            None => json.push_str("null"),
        }
        let Self { size, in_nursery, requested, .. } = self;
        let _ = write!(json, ",\"size\":{size},\"inNursery\":{in_nursery},\"requested\":{requested}}}");
    }
}

/// The reason why an observer refused an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ObserverError {
    /// DMD does not record this process.
    NotRecording,
    /// Sixteen observers track allocation sites, or there is no memory for the log.
    NoRoom,
    /// DMD records only a sample of this process, so a log would miss allocations.
    Sampling,
    /// The observer does not track allocation sites.
    NotTracking,
    /// A sampling probability is not between 0 and 1.
    BadProbability(f64),
    /// The length of a log is not from 1 to 2147483647.
    BadLength(u64),
}

impl fmt::Display for ObserverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRecording => f.write_str(
                "cannot track allocation sites: DMD does not record this process; declare dmd::Dmd as the global \
                 allocator and set $DMD, or start the program with about-memory run",
            ),
            Self::NoRoom => f.write_str(
                "cannot track allocation sites: 16 observers already do so, or there is no memory for the log",
            ),
            Self::Sampling => f.write_str(
                "cannot track allocation sites: DMD takes a sample of this process, and a log needs all allocations; \
                 start the program without --sample-bytes",
            ),
            Self::NotTracking => f.write_str(
                "cannot drain the allocations log: call set_tracking_allocation_sites(true) first",
            ),
            Self::BadProbability(value) => {
                write!(f, "the allocation sampling probability {value} is not a number between 0 and 1")
            }
            Self::BadLength(value) => {
                write!(f, "the length {value} of an allocations log is not between 1 and {MAX_LENGTH}")
            }
        }
    }
}

impl core::error::Error for ObserverError {}

/// The largest length of a log, the same as in Firefox.
const MAX_LENGTH: u64 = i32::MAX as u64;

impl MemoryObserver {
    /// An observer that does not track allocation sites yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether this observer logs allocations. Initially false.
    pub fn tracking_allocation_sites(&self) -> bool {
        self.state().log.is_some()
    }

    /// Starts logging allocations, or stops logging and empties the log.
    ///
    /// # Errors
    ///
    /// Returns [`ObserverError::NotRecording`], [`ObserverError::Sampling`] or [`ObserverError::NoRoom`] if DMD cannot
    /// log allocations for this observer.
    pub fn set_tracking_allocation_sites(&self, tracking: bool) -> Result<(), ObserverError> {
        let mut state = self.state();
        if !tracking {
            state.log = None;
        } else if state.log.is_none() {
            let log = AllocationLog::open(state.limits).map_err(|error| match error {
                NoLog::NotRecording => ObserverError::NotRecording,
                NoLog::NoRoom => ObserverError::NoRoom,
                NoLog::Sampling => ObserverError::Sampling,
            })?;
            state.log = Some((log, KeepsNotes::new()));
        }
        Ok(())
    }

    /// The probability with which an allocation is logged. Initially 1.
    pub fn allocation_sampling_probability(&self) -> f64 {
        self.state().limits.probability
    }

    /// Sets the probability with which later allocations are logged.
    ///
    /// # Errors
    ///
    /// Returns [`ObserverError::BadProbability`] if `probability` is not between 0 and 1.
    pub fn set_allocation_sampling_probability(&self, probability: f64) -> Result<(), ObserverError> {
        if !(0.0..=1.0).contains(&probability) {
            return Err(ObserverError::BadProbability(probability));
        }
        self.limit(|limits| limits.probability = probability)
    }

    /// The largest number of entries that the log keeps. Initially 5000.
    pub fn max_allocations_log_length(&self) -> u64 {
        self.state().limits.length
    }

    /// Sets the largest number of entries that the log keeps. If the log has more entries, it drops the oldest
    /// without setting `allocations_log_overflowed`, as in Firefox.
    ///
    /// # Errors
    ///
    /// Returns [`ObserverError::BadLength`] for 0 and for 2^31 or more, and [`ObserverError::NoRoom`] if there is no
    /// memory for the log.
    pub fn set_max_allocations_log_length(&self, length: u64) -> Result<(), ObserverError> {
        if !(1..=MAX_LENGTH).contains(&length) {
            return Err(ObserverError::BadLength(length));
        }
        self.limit(|limits| limits.length = length)
    }

    /// Whether the log was full and has lost entries since the last drain.
    pub fn allocations_log_overflowed(&self) -> bool {
        self.log_state().overflowed
    }

    /// The number of allocations and frees since the last drain that DMD lost, so that no observer received them. DMD
    /// can lose events of signal handlers that interrupt DMD itself. Firefox has no such number.
    pub fn lost_allocations(&self) -> u64 {
        self.log_state().lost
    }

    fn log_state(&self) -> LogState {
        self.state().log.as_ref().map(|(log, _)| log.state()).unwrap_or_default()
    }

    /// Empties the log, and returns its entries, the oldest first.
    ///
    /// DMD does not record allocations of this function. The first call reads symbols from the files of the program.
    /// This can take a second.
    ///
    /// # Errors
    ///
    /// Returns [`ObserverError::NotTracking`] if this observer does not track allocation sites.
    pub fn drain_allocations_log(&self) -> Result<Vec<AllocationsLogEntry>, ObserverError> {
        let state = self.state();
        let (log, _) = state.log.as_ref().ok_or(ObserverError::NotTracking)?;
        // Created inside the call below, so that DMD does not record its allocations.
        let mut drained = None;
        log.drain(&mut |row| drained.get_or_insert_with(|| DrainedEntries::new(true)).add(row));
        Ok(drained.map(DrainedEntries::finish).unwrap_or_default())
    }

    /// Like [`drain_allocations_log`](Self::drain_allocations_log), but also returns the state of the log, and reads
    /// no files: frames contain only modules and offsets, and classes only the program's descriptions.
    #[cfg(feature = "live")]
    pub(crate) fn drain_places(&self) -> Result<(Vec<AllocationsLogEntry>, LogState), ObserverError> {
        let state = self.state();
        let (log, _) = state.log.as_ref().ok_or(ObserverError::NotTracking)?;
        let mut drained = None;
        let contained =
            log.drain_places(&mut |row| drained.get_or_insert_with(|| DrainedEntries::new(false)).add(row));
        Ok((drained.map(DrainedEntries::finish).unwrap_or_default(), contained))
    }

    /// The handler that this observer calls after each garbage collection. Initially `None`.
    pub fn on_garbage_collection(&self) -> Option<Arc<GarbageCollectionHandler>> {
        self.state().on_garbage_collection.as_ref().map(|(handler, _)| Arc::clone(handler))
    }

    /// Calls `handler` with this observer and the statistics after each garbage collection, on the thread of the
    /// collector, until the observer is dropped. `handler` replaces the previous handler; `None` removes the previous
    /// handler.
    ///
    /// ```
    /// use memory_reporter::watching::{GarbageCollectionCycle, MemoryObserver};
    /// use std::sync::Arc;
    ///
    /// let observer = MemoryObserver::new();
    /// observer.set_on_garbage_collection(Some(Arc::new(|owner, cycle| {
    ///     assert!(!owner.tracking_allocation_sites());
    ///     println!("{}", cycle.to_json());
    /// })));
    /// GarbageCollectionCycle::begin("interner", "API").end();
    /// observer.set_on_garbage_collection(None);
    /// assert!(observer.on_garbage_collection().is_none());
    /// ```
    pub fn set_on_garbage_collection(&self, handler: Option<Arc<GarbageCollectionHandler>>) {
        let entry = handler.map(|handler| {
            let (owner, called) = (Arc::downgrade(&self.state), Arc::clone(&handler));
            let hook = on_garbage_collection(move |statistics| {
                if let Some(state) = owner.upgrade() {
                    Self { state }.call(&*called, statistics);
                }
            });
            (handler, hook)
        });
        // The destructor of the handler belongs to the program and may call this observer, so it runs without the
        // lock.
        let before = core::mem::replace(&mut self.state().on_garbage_collection, entry);
        drop(before);
    }

    /// The handler for panics of this observer's other handlers. Initially `None`: a panic then only ends its
    /// handler.
    pub fn uncaught_exception_handler(&self) -> Option<Arc<UncaughtExceptionHandler>> {
        self.state().uncaught_exception.clone()
    }

    /// Calls `handler` with this observer and the text of the panic if the handler of garbage collections panics.
    /// `handler` replaces the previous handler; `None` removes the previous handler.
    pub fn set_uncaught_exception_handler(&self, handler: Option<Arc<UncaughtExceptionHandler>>) {
        let before = core::mem::replace(&mut self.state().uncaught_exception, handler);
        drop(before);
    }

    /// Calls a handler while this observer holds no lock.
    fn call(&self, handler: &GarbageCollectionHandler, statistics: &GarbageCollection) {
        let Err(panic) = isolation::contain(|| handler(self, statistics)) else { return };
        if let Some(handler) = self.uncaught_exception_handler() {
            // The panic hook has already reported a panic of this handler.
            let _ = isolation::contain(|| handler(self, &panic));
            let _ = isolation::discard(handler);
        }
    }

    fn limit(&self, change: impl FnOnce(&mut LogLimits)) -> Result<(), ObserverError> {
        let mut state = self.state();
        let mut limits = state.limits;
        change(&mut limits);
        if state.log.as_ref().is_some_and(|(log, _)| !log.limit(limits)) {
            return Err(ObserverError::NoRoom);
        }
        state.limits = limits;
        Ok(())
    }

    fn state(&self) -> ProcessGuard<'_, ObserverState> {
        self.state.lock()
    }
}

/// The entries of a drained log. Each stack is looked up once.
struct DrainedEntries {
    /// Whether to look up symbols: the functions of stacks, and the Rust types of blocks.
    with_symbols: bool,
    entries: Vec<AllocationsLogEntry>,
    sites: HashMap<u64, (SavedStack, Option<ClassName>)>,
    classes: ClassFinder,
    nurseries: NurseryLookup,
}

impl DrainedEntries {
    fn new(with_symbols: bool) -> Self {
        Self {
            with_symbols,
            entries: Vec::new(),
            sites: HashMap::new(),
            classes: ClassFinder::new(),
            nurseries: NurseryLookup::new(),
        }
    }

    fn add(&mut self, row: &BlockRow) {
        let end = row.address.saturating_add(usize::try_from(row.usable).unwrap_or(usize::MAX));
        self.classes.add(row.address, end, row.tick);
        let site = (row.site != 0).then(|| {
            let new = || match self.with_symbols {
                true => {
                    (SavedStack::from_site(row.site), engine_abi::site_type(row.site).map(ClassName::new))
                }
                false => (SavedStack::places_of_site(row.site), None),
            };
            &*self.sites.entry(row.site).or_insert_with(new)
        });
        self.entries.push(AllocationsLogEntry {
            timestamp: clock::timestamp(row.nanoseconds),
            frame: site.map(|(stack, _)| stack.clone()),
            class: site.and_then(|(_, type_name)| type_name.clone()),
            size: row.usable,
            in_nursery: self.nurseries.owns(row.address..end, row.tick),
            requested: row.requested,
            address: row.address,
        });
    }

    fn finish(self) -> Vec<AllocationsLogEntry> {
        let Self { mut entries, classes, .. } = self;
        for (entry, class) in entries.iter_mut().zip(classes.finish()) {
            entry.class = class.or(entry.class.take());
        }
        entries
    }
}
