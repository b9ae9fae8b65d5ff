//! The reporters of one thread, which other threads must not access, and the list of threads with such reporters.
//!
//! A collection on another thread sends requests to the threads in the list (`collect::answer_here`). A thread enters
//! the list with its first reporter or its first answer, and leaves it when the thread ends. No lock is held while a
//! reporter runs, returns its name or is dropped.

use core::cell::{Cell, OnceCell, RefCell};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use crate::platform;
use crate::process_lock::{ChangeSignal, ProcessLock};
use crate::small_sort::sort_by;

use super::isolation;
use super::memory_reporter::MemoryReporter;
use super::reporter_name::ReporterName;

std::thread_local! {
    static LOCAL: LocalEntries = const { LocalEntries(RefCell::new(Vec::new())) };
    static NEXT: Cell<u64> = const { Cell::new(0) };
    static THIS: OnceCell<ThisThread> = const { OnceCell::new() };
}

/// The threads, in the order in which they entered the list.
static THREADS: ProcessLock<Vec<Arc<LocalThread>>> = ProcessLock::new(Vec::new());
static CHANGED: ChangeSignal = ChangeSignal::new();

/// The reporters of a thread. If the program leaks a registration, its reporter stays here until the thread ends.
struct LocalEntries(RefCell<Vec<Rc<LocalEntry>>>);

impl Drop for LocalEntries {
    fn drop(&mut self) {
        for entry in self.0.take() {
            // The destructor belongs to the program: its panic would end the process here. The panic hook has already
            // reported the panic.
            let _ = isolation::discard(entry);
        }
    }
}

/// One reporter of one thread.
pub(crate) struct LocalEntry {
    id: u64,
    pub(crate) name: ReporterName,
    pub(crate) reporter: Rc<dyn MemoryReporter>,
}

/// Keeps a reporter of one thread registered; dropping it unregisters the reporter.
#[must_use = "bind the registration to a variable, as in `let _registration = ..`: dropping the registration unregisters the reporter, and `let _ = ..` drops it at once; to keep the reporter registered, call `forever`"]
pub struct LocalRegistration {
    id: u64,
    one_thread: core::marker::PhantomData<*const ()>,
}

/// Registers a reporter that runs only on this thread: for data that other threads must not access.
///
/// The reporter runs in collections on this thread. If the thread also calls [`answer_here`](crate::answer_here)
/// repeatedly, the reporter also runs there, for live requests and for other collections with
/// [`CollectOptions::ask_threads`](crate::CollectOptions). While a thread ends and runs the destructors of its
/// thread-local variables, its list of reporters may no longer exist. The call then registers nothing.
pub fn register_local(reporter: Rc<dyn MemoryReporter>) -> LocalRegistration {
    let id = NEXT.replace(NEXT.get() + 1);
    let entry = Rc::new(LocalEntry { id, name: ReporterName::ask(&*reporter), reporter });
    let registered = LOCAL.try_with(|local| local.0.borrow_mut().push(entry)).is_ok();
    if registered && let Some(thread) = this_thread() {
        thread.reporters.fetch_add(1, Ordering::SeqCst);
    }
    LocalRegistration { id, one_thread: core::marker::PhantomData }
}

impl LocalRegistration {
    /// Keeps the reporter registered until its thread ends.
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl Drop for LocalRegistration {
    fn drop(&mut self) {
        // At the thread's end the list may no longer exist. The reporter is dropped outside of the borrow, since its
        // destructor may register or unregister reporters.
        let removed = LOCAL.try_with(|local| {
            let mut local = local.0.try_borrow_mut().ok()?;
            let at = local.iter().position(|entry| entry.id == self.id)?;
            Some(local.remove(at))
        });
        if let (Ok(Some(_)), Some(thread)) = (&removed, this_thread()) {
            thread.reporters.fetch_sub(1, Ordering::SeqCst);
        }
        drop(removed);
    }
}

impl fmt::Debug for LocalRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalRegistration").field(&self.id).finish()
    }
}

/// The reporters of this thread, sorted by name.
pub(crate) fn local_entries() -> Vec<Rc<LocalEntry>> {
    // An engine of DMD may call this function at the end of the process, when the list no longer exists. The result is
    // then empty.
    let mut entries = LOCAL.try_with(|local| local.0.borrow().clone()).unwrap_or_default();
    sort_by(&mut entries, |a, b| a.name.text().cmp(b.name.text()));
    entries
}

/// A thread with its own reporters, with the data that other threads use.
#[derive(Debug)]
pub(crate) struct LocalThread {
    name: Option<String>,
    tid: AtomicU32,
    /// The process of this entry. The child process of a fork has copies of all entries, but only the thread that
    /// forked runs.
    process: AtomicU32,
    reporters: AtomicUsize,
    /// Whether the thread has missed a request and has not read requests since, or has never read a request.
    is_silent: AtomicBool,
    has_ended: AtomicBool,
}

impl LocalThread {
    /// The name of the thread for warnings.
    pub(crate) fn describe(&self, anonymize: bool) -> String {
        let name = match &self.name {
            Some(_) if anonymize => "<anonymized>",
            Some(name) => name,
            None => "without a name",
        };
        format!("thread {name} (tid={})", self.tid.load(Ordering::Relaxed))
    }

    pub(crate) fn reporters(&self) -> usize {
        self.reporters.load(Ordering::SeqCst)
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::SeqCst)
    }

    pub(crate) fn set_silent(&self, is_silent: bool) {
        self.is_silent.store(is_silent, Ordering::SeqCst);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }
}

/// Removes its thread from the list when the thread ends.
struct ThisThread(Arc<LocalThread>);

impl ThisThread {
    fn new() -> Self {
        let thread = Arc::new(LocalThread {
            name: std::thread::current().name().map(str::to_owned),
            tid: AtomicU32::new(platform::thread_id()),
            process: AtomicU32::new(std::process::id()),
            reporters: AtomicUsize::new(0),
            is_silent: AtomicBool::new(true),
            has_ended: AtomicBool::new(false),
        });
        THREADS.lock().push(Arc::clone(&thread));
        Self(thread)
    }
}

impl Drop for ThisThread {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::SeqCst);
        THREADS.lock().retain(|thread| !Arc::ptr_eq(thread, &self.0));
        CHANGED.notify();
    }
}

/// Returns this thread, and adds it to the list if it is missing there. `None` if the thread is ending.
pub(crate) fn this_thread() -> Option<Arc<LocalThread>> {
    let thread = THIS.try_with(|this| Arc::clone(&this.get_or_init(ThisThread::new).0)).ok()?;
    let process = std::process::id();
    if thread.process.swap(process, Ordering::SeqCst) != process {
        thread.tid.store(platform::thread_id(), Ordering::Relaxed);
    }
    Some(thread)
}

/// The other threads of this process that have reporters now.
pub(crate) fn other_threads() -> Vec<Arc<LocalThread>> {
    let process = std::process::id();
    // If this thread is not in the list, it need not be added.
    let this = THIS.try_with(|this| this.get().map(|this| Arc::clone(&this.0))).ok().flatten();
    let is_asked = |thread: &&Arc<LocalThread>| {
        thread.process.load(Ordering::SeqCst) == process
            && thread.reporters() > 0
            && this.as_ref().is_none_or(|this| !Arc::ptr_eq(this, thread))
    };
    THREADS.lock().iter().filter(is_asked).cloned().collect()
}

/// Waits until `is_done` returns true, but not longer than `until`. Calls `is_done` again whenever a thread ends, and
/// after each [`something_changed`]. `is_done` must not wait.
pub(crate) fn wait(until: Instant, mut is_done: impl FnMut() -> bool) {
    loop {
        let seen = CHANGED.count();
        let left = until.saturating_duration_since(Instant::now());
        if is_done() || left.is_zero() {
            return;
        }
        drop(CHANGED.wait(THREADS.lock(), seen, left));
    }
}

/// Wakes callers of [`wait`], so that they check again.
pub(crate) fn something_changed() {
    CHANGED.notify();
}
