//! The reporters of the program, which are registered at link time or at run time.
//!
//! Invariant: after a [`Registration`] is dropped, its reporter is not called. No lock is held while a reporter runs,
//! returns its name or is dropped. An entry counts its runs. Dropping the registration waits until the runs end, except
//! in two cases: a collection has found the reporter stuck, or the drop is inside a run of this reporter, or of a
//! reporter for which this reporter waits in a drop.

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

/// The value that [`register_reporter!`](crate::register_reporter) links into the program.
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

/// The answer to a collection that is about to run an entry.
pub(crate) enum EntryTurn {
    /// The entry may run. While this right exists, dropping the registration waits.
    Run(RunRight),
    /// The entry is no longer registered, or the program has dropped the reporter.
    Gone,
    /// An earlier run has not ended.
    Stuck,
}

std::thread_local! {
    /// The entry whose reporter runs on this thread. There is at most one, since a nested collection runs no
    /// reporters.
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

    /// Records that collections have stopped waiting for the current run. The entry does not run again until that run
    /// ends.
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

/// A drop that waits: the entry whose run drops a registration, and the entry of that registration. The
/// entries are addresses, used only for comparison.
type DropWait = (usize, usize);

static WAITS: ProcessLock<Vec<DropWait>> = ProcessLock::new(Vec::new());

/// Records that this thread waits for the runs of an entry. The wait ends when this value is dropped.
struct WaitGuard(Option<DropWait>);

impl WaitGuard {
    /// Starts a wait inside the run of `current`; null means outside of runs. Returns `None` if the thread would wait
    /// for itself: if `awaited` is `current`, or waits for `current`.
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

/// The permission to run an entry's reporter.
pub(crate) struct RunRight {
    entry: Arc<RegistryEntry>,
    /// `None` after the run has started.
    reporter: Option<OwnedReporter>,
}

impl RunRight {
    /// Runs `f` as a run of this entry, and ends the run. The end may drop the reporter; the second result is the
    /// result of this drop.
    pub(crate) fn run<T>(mut self, f: impl FnOnce(&SharedReporter) -> T) -> (T, ContainedResult<()>) {
        struct RunReset(*const RegistryEntry);
        impl Drop for RunReset {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let reporter = self.reporter.take().expect("the reporter is present until the run starts");
        let given = {
            let _reset = RunReset(CURRENT.replace(&raw const *self.entry));
            f(reporter.get())
        };
        // Ends the run first: dropping the reporter may drop its own registration.
        drop(self);
        (given, isolation::as_reporter(|| drop(reporter)))
    }
}

impl Drop for RunRight {
    fn drop(&mut self) {
        // The reporter is still present only if it never ran because no thread could start.
        let reporter = self.reporter.take();
        let mut runs = self.entry.runs.lock();
        runs.running -= 1;
        if runs.running == 0 {
            runs.stuck = false;
        }
        drop(runs);
        self.entry.run_ended.notify();
        // The panic hook has already reported a panic of the drop.
        let _ = isolation::discard(reporter);
    }
}

/// Keeps a reporter registered; dropping it unregisters the reporter.
///
/// When the drop returns, the reporter is not running and is not called again. In two cases a drop does not wait for a
/// running reporter: inside the reporter's own run, and during a run that a collection with a deadline no longer waits
/// for. If the runs of two reporters drop each other's registrations, one of the two drops does not wait.
///
/// # A drop that never returns
///
/// The drop waits as long as the reporter runs. If the reporter never returns, the drop never returns. The same
/// happens if the reporter waits for the thread that drops its registration: this crate cannot detect that the thread
/// works for the reporter. A reporter must not wait for such a thread. Collections with a
/// [deadline](crate::CollectOptions::deadline), such as collections for live requests, end the wait: after the
/// deadline, the drop returns.
#[must_use = "bind the registration to a variable, as in `let _registration = ..`: dropping the registration unregisters the reporter, and `let _ = ..` drops it at once; to keep the reporter registered, call `forever`"]
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
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
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

/// Registers a reporter for the whole program. The registry keeps the reporter alive.
pub fn register_strong(reporter: Arc<dyn MemoryReporter + Send + Sync>) -> Registration {
    Registration::new(ReporterName::ask(&*reporter), ReporterSource::Strong(reporter))
}

/// Registers a reporter for the whole program without keeping it alive: it reports until its last `Arc` is dropped.
pub fn register_weak<T: MemoryReporter + Send + Sync + 'static>(reporter: &Arc<T>) -> Registration {
    let weak: Weak<T> = Arc::downgrade(reporter);
    Registration::new(ReporterName::ask(&**reporter), ReporterSource::Weak(weak))
}

/// All linked reporters. The function adds the reporters that [`LINKED`] does not contain yet: further reporters appear
/// while the program starts, and when it loads a library.
fn linked() -> Vec<Arc<RegistryEntry>> {
    let mut all = LINKED.lock().clone();
    for linked in inventory::iter::<StaticReporter>() {
        if all.iter().any(|entry| entry.source.is(linked)) {
            continue;
        }
        // The reporter returns its name while no lock is held, perhaps on two threads at the same time.
        let entry = RegistryEntry::new(ReporterName::ask(linked.0), ReporterSource::Static(linked));
        let mut known = LINKED.lock();
        if !known.iter().any(|entry| entry.source.is(linked)) {
            known.push(entry);
        }
        all.clone_from(&known);
    }
    all
}

/// All reporters of the program, sorted by name. For equal names, linked reporters come first, in the order of
/// linking (it may change between builds). Other reporters follow in the order of registration.
pub(crate) fn entries() -> Vec<Arc<RegistryEntry>> {
    let mut entries = linked();
    entries.extend(REGISTERED.lock().iter().cloned());
    sort_by(&mut entries, |a, b| a.name.text().cmp(b.name.text()));
    entries
}

impl MallocSizeOf for RegistryEntry {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        // Measures no reporter: the reporter behind the pointer belongs to the program and reports its own memory.
        ops.field("name", &self.name)
    }
}

/// Measures the heap that the registry owns.
pub(crate) fn measure(ops: &mut MallocSizeOfOps<ErasedReading<'_>>) -> usize {
    ops.value(&*REGISTERED.lock()) + ops.value(&*LINKED.lock())
}
