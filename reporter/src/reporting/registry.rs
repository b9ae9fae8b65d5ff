//! The reporters of the program, which register while linking or at run time.
//!
//! Invariant: after a [`Registration`] is dropped, nothing calls its reporter. No lock is held while a reporter runs,
//! gives its name or is dropped. An entry counts its runs; dropping the registration waits for them to end, unless
//! the drop happens inside a run that they wait for, or a collection has found the reporter stuck.

use core::cell::Cell;
use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Weak};

use crate::measure::{ErasedReading, MallocSizeOf, MallocSizeOfOps, Reading};
use crate::process_lock::{ChangeSignal, ProcessLock};
use crate::small_sort::sort_by;

use super::isolation::{self, ContainedResult};
use super::memory_reporter::MemoryReporter;
use super::reporter_name::ReporterName;

type SharedReporter = dyn MemoryReporter + Send + Sync;

/// The value that [`register_reporter!`](crate::register_reporter) submits.
pub struct StaticReporter(&'static SharedReporter);

impl StaticReporter {
    #[doc(hidden)]
    pub const fn new(reporter: &'static SharedReporter) -> Self {
        Self(reporter)
    }
}

impl fmt::Debug for StaticReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticReporter").field(&self.0.name()).finish()
    }
}

inventory::collect!(StaticReporter);

enum ReporterSource {
    Static(&'static StaticReporter),
    Strong(Arc<SharedReporter>),
    Weak(Weak<SharedReporter>),
}

impl ReporterSource {
    fn is(&self, linked: &'static StaticReporter) -> bool {
        matches!(self, Self::Static(known) if core::ptr::eq(*known, linked))
    }
}

/// One registered reporter.
pub(crate) struct RegistryEntry {
    name: ReporterName,
    source: ReporterSource,
    runs: ProcessLock<EntryRuns>,
    run_ended: ChangeSignal,
}

#[derive(Default)]
struct EntryRuns {
    running: usize,
    removed: bool,
    stuck: bool,
}

/// Whether an entry may run.
pub(crate) enum EntryTurn {
    /// It may run. Until this is dropped, whoever unregisters it waits.
    Run(RunRight),
    /// It is no longer registered, or its owner has dropped it.
    Gone,
    /// An earlier run has not ended.
    Stuck,
}

std::thread_local! {
    /// The entry whose reporter runs on this thread. There is at most one, since a nested collection runs none.
    static CURRENT: Cell<*const RegistryEntry> = const { Cell::new(core::ptr::null()) };
}

static REGISTERED: ProcessLock<Vec<Arc<RegistryEntry>>> = ProcessLock::new(Vec::new());
static LINKED: ProcessLock<Vec<Arc<RegistryEntry>>> = ProcessLock::new(Vec::new());

impl RegistryEntry {
    fn new(name: ReporterName, source: ReporterSource) -> Arc<Self> {
        Arc::new(Self { name, source, runs: ProcessLock::default(), run_ended: ChangeSignal::new() })
    }

    pub(crate) fn name(&self) -> &ReporterName {
        &self.name
    }

    pub(crate) fn turn(self: &Arc<Self>) -> EntryTurn {
        let mut runs = self.runs.lock();
        if runs.removed {
            return EntryTurn::Gone;
        }
        if runs.stuck {
            return EntryTurn::Stuck;
        }
        let reporter = match &self.source {
            ReporterSource::Static(linked) => OwnedReporter::Static(linked.0),
            ReporterSource::Strong(reporter) => OwnedReporter::Owned(Arc::clone(reporter)),
            ReporterSource::Weak(reporter) => match reporter.upgrade() {
                Some(reporter) => OwnedReporter::Owned(reporter),
                None => return EntryTurn::Gone,
            },
        };
        runs.running += 1;
        drop(runs);
        EntryTurn::Run(RunRight { entry: Arc::clone(self), reporter: Some(reporter) })
    }

    /// Collections stop waiting for the current run. No other run starts until it ends.
    pub(crate) fn found_stuck(&self) {
        let mut runs = self.runs.lock();
        runs.stuck = runs.running > 0;
        drop(runs);
        self.run_ended.notify();
    }

    fn remove(&self) {
        self.runs.lock().removed = true;
        let Some(_waiting) = WaitGuard::begin(CURRENT.get(), self) else { return };
        loop {
            let seen = self.run_ended.count();
            let runs = self.runs.lock();
            if runs.running == 0 || runs.stuck {
                return;
            }
            drop(self.run_ended.wait(runs, seen, Duration::MAX));
        }
    }
}

/// The entry whose run drops a registration, and the entry of that registration, while the former waits for the latter.
/// Both are compared by their addresses only.
type DropWait = (usize, usize);

static WAITS: ProcessLock<Vec<DropWait>> = ProcessLock::new(Vec::new());

/// A thread waits for the runs of an entry, until dropped.
struct WaitGuard(Option<DropWait>);

impl WaitGuard {
    /// Begins to wait in the run of `current`, which is null outside of runs. Returns `None` if the thread would wait
    /// for itself: if `awaited` is `current`, or waits for it.
    fn begin(current: *const RegistryEntry, awaited: &RegistryEntry) -> Option<Self> {
        if current.is_null() {
            return Some(Self(None));
        }
        let (current, awaited) = (current.addr(), core::ptr::from_ref(awaited).addr());
        let mut waits = WAITS.lock();
        let mut reached = vec![awaited];
        let mut next = 0;
        while let Some(&entry) = reached.get(next) {
            if entry == current {
                return None;
            }
            for (_, to) in waits.iter().filter(|(from, _)| *from == entry) {
                if !reached.contains(to) {
                    reached.push(*to);
                }
            }
            next += 1;
        }
        waits.push((current, awaited));
        Some(Self(Some((current, awaited))))
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        if let Some(wait) = self.0 {
            let mut waits = WAITS.lock();
            if let Some(place) = waits.iter().position(|other| *other == wait) {
                waits.swap_remove(place);
            }
        }
    }
}

enum OwnedReporter {
    Static(&'static SharedReporter),
    Owned(Arc<SharedReporter>),
}

impl OwnedReporter {
    fn get(&self) -> &SharedReporter {
        match self {
            Self::Static(reporter) => *reporter,
            Self::Owned(reporter) => &**reporter,
        }
    }
}

/// The right to run an entry's reporter.
pub(crate) struct RunRight {
    entry: Arc<RegistryEntry>,
    /// `None` once the run has ended.
    reporter: Option<OwnedReporter>,
}

impl RunRight {
    /// Runs `f` as a run of this entry, and ends the run. That may drop the reporter; the second result says how the
    /// drop went.
    pub(crate) fn run<T>(mut self, f: impl FnOnce(&SharedReporter) -> T) -> (T, ContainedResult<()>) {
        struct RunReset(*const RegistryEntry);
        impl Drop for RunReset {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let reporter = self.reporter.take().expect("only the end of the run takes it");
        let given = {
            let _reset = RunReset(CURRENT.replace(&raw const *self.entry));
            f(reporter.get())
        };
        // Before the reporter is dropped, which may drop its own registration.
        drop(self);
        (given, isolation::as_reporter(|| drop(reporter)))
    }
}

impl Drop for RunRight {
    fn drop(&mut self) {
        // There is one only if it never ran, since no thread could start.
        let reporter = self.reporter.take();
        let mut runs = self.entry.runs.lock();
        runs.running -= 1;
        if runs.running == 0 {
            runs.stuck = false;
        }
        drop(runs);
        self.entry.run_ended.notify();
        // If the drop panicked, the panic hook has reported it.
        let _ = isolation::discard(reporter);
    }
}

/// Keeps a reporter registered; dropping it unregisters the reporter.
///
/// When the drop returns, the reporter is not running and nothing will call it. The drop does not wait if it happens
/// inside the reporter's own run, nor for a run that a collection with a deadline has given up. If the runs of two
/// reporters drop each other's registrations, one of the two drops does not wait.
///
/// # A drop that never returns
///
/// The drop waits as long as the reporter runs. That is for ever if the reporter never returns, or if it waits for the
/// thread that drops its registration: nothing shows that the thread works for the reporter. A reporter must not wait
/// for such a thread. Collections with a [deadline](crate::CollectOptions::deadline), as those of live requests are,
/// end the wait: once the time is over, the drop returns.
#[must_use = "bind it to a variable, as in `let _registration = ..`: dropping it unregisters the reporter, and `let _ = ..` drops it at once; `forever` keeps it"]
pub struct Registration {
    entry: Arc<RegistryEntry>,
}

impl Registration {
    fn new(name: ReporterName, source: ReporterSource) -> Self {
        let entry = RegistryEntry::new(name, source);
        REGISTERED.lock().push(Arc::clone(&entry));
        Self { entry }
    }

    /// Keeps the reporter registered until the program ends.
    #[allow(clippy::mem_forget, reason = "never to unregister is what is asked for")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        REGISTERED.lock().retain(|entry| !Arc::ptr_eq(entry, &self.entry));
        self.entry.remove();
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.entry.name.text()).finish()
    }
}

/// Registers a reporter for the whole program; the registry keeps it alive.
pub fn register_strong(reporter: Arc<dyn MemoryReporter + Send + Sync>) -> Registration {
    Registration::new(ReporterName::ask(&*reporter), ReporterSource::Strong(reporter))
}

/// Registers a reporter for the whole program without keeping it alive: it reports until its last `Arc` is dropped.
pub fn register_weak<T: MemoryReporter + Send + Sync + 'static>(reporter: &Arc<T>) -> Registration {
    let weak: Weak<T> = Arc::downgrade(reporter);
    Registration::new(ReporterName::ask(&**reporter), ReporterSource::Weak(weak))
}

/// Adds the linked reporters that are new: a collection may begin while the program still starts, and the program may
/// load a library later.
fn linked() -> Vec<Arc<RegistryEntry>> {
    let mut all = LINKED.lock().clone();
    for linked in inventory::iter::<StaticReporter>() {
        if all.iter().any(|entry| entry.source.is(linked)) {
            continue;
        }
        // The reporter gives its name while no lock is held, perhaps to two threads at the same time.
        let entry = RegistryEntry::new(ReporterName::ask(linked.0), ReporterSource::Static(linked));
        let mut known = LINKED.lock();
        if !known.iter().any(|entry| entry.source.is(linked)) {
            known.push(entry);
        }
        all.clone_from(&known);
    }
    all
}

/// All reporters of the program, by name; those of one name in order of registration, linked ones
/// first (in the order of linking, which may change between builds).
pub(crate) fn entries() -> Vec<Arc<RegistryEntry>> {
    let mut entries = linked();
    entries.extend(REGISTERED.lock().iter().cloned());
    sort_by(&mut entries, |a, b| a.name.text().cmp(b.name.text()));
    entries
}

impl MallocSizeOf for RegistryEntry {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        // The reporter behind the pointer belongs to the program and reports for itself.
        ops.field("name", &self.name)
    }
}

/// Measures the heap that the registry owns.
pub(crate) fn measure(ops: &mut MallocSizeOfOps<ErasedReading<'_>>) -> usize {
    ops.value(&*REGISTERED.lock()) + ops.value(&*LINKED.lock())
}
