//! Runs the reporters of other threads: a collection makes a request, and each thread runs its own reporters when it
//! calls [`answer_here`].
//!
//! One thread answers at a time, so that a block shared by reporters of two threads is counted once. No lock is held
//! while a reporter runs. After the collection closes its request, later reports for this request are ignored.

use core::cell::Cell;
use core::mem;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memory_report::WarningKind;

use crate::engine_abi::{MarkingRun, ReporterMarker};
use crate::measure::Addresses;
use crate::process_lock::{ChangeSignal, ProcessLock};
use crate::reporting::ReporterName;
use crate::reporting::isolation::{self, ContainedResult};
use crate::reporting::local_reporters::{self, LocalThread};
use crate::small_sort::sort_by;

use super::one_run::{ReporterBrief, RunOutcome};
use super::times;

/// The number of the last request. It grows under the lock of [`REQUESTS`].
static NUMBER: AtomicU64 = AtomicU64::new(1);
static REQUESTS: ProcessLock<Vec<Arc<ThreadRequest>>> = ProcessLock::new(Vec::new());

std::thread_local! {
    /// The value of [`NUMBER`] when this thread last read the requests.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// Runs this thread's reporters for collections that wait for them: collections for live requests, and collections
/// with [`CollectOptions::ask_threads`](crate::CollectOptions::ask_threads).
///
/// A thread with reporters of [`register_local`](crate::register_local) calls this function whenever it has time for
/// them, for example once per turn of its event loop. If no collection waits, the call costs one relaxed load. If a
/// loop may sleep longer than a collection waits (about two seconds for `about-memory show`), the loop needs a timeout.
/// Without a timeout, the collection warns that the thread did not answer. While another thread answers the same
/// collection, the call waits for that thread, but at most until the collection stops waiting.
///
/// If a reporter panics, only its own reports are lost. Inside a reporter the call does nothing.
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// use std::time::Duration;
///
/// use memory_reporter::{CollectOptions, MallocSizeOf, MemoryReporter, Reports, collect_report};
///
/// #[derive(MallocSizeOf)]
/// struct Engine {
///     objects: Vec<Rc<String>>,
/// }
///
/// impl MemoryReporter for Engine {
///     fn collect_reports(&self, out: &mut Reports) {
///         collect_report!(out, "explicit/script", Heap, self, "Memory used by the script engine.");
///     }
/// }
///
/// # let (stop, is_over) = std::sync::mpsc::channel::<()>();
/// # let (ready, is_ready) = std::sync::mpsc::channel();
/// let scripts = std::thread::spawn(move || {
///     let engine = Rc::new(RefCell::new(Engine { objects: Vec::new() }));
///     let _registration = memory_reporter::register_local(engine.clone());
///     loop {
///         engine.borrow_mut().objects.push(Rc::new("an object".to_owned())); // runs scripts
///         memory_reporter::answer_here();
///         # let _ = ready.send(());
///         # std::thread::sleep(Duration::from_millis(1));
///         # if is_over.try_recv().is_ok() {
///         #     break;
///         # }
///     }
/// });
/// # is_ready.recv().unwrap();
///
/// // A live request collects in the same way:
/// let reports = memory_reporter::collect_reports(&CollectOptions::new().ask_threads(Duration::from_secs(5)));
/// assert!(reports.iter().any(|report| report.path == "explicit/script"));
/// # stop.send(()).unwrap();
/// # scripts.join().unwrap();
/// ```
#[inline]
pub fn answer_here() {
    if NUMBER.load(Ordering::Relaxed) != SEEN.get() {
        answer();
    }
}

#[cold]
fn answer() {
    if isolation::is_reporting() {
        return;
    }
    let Some(thread) = local_reporters::this_thread() else { return };
    let requests = {
        let mut requests = REQUESTS.lock();
        SEEN.set(NUMBER.load(Ordering::Relaxed));
        // The child process of a fork does not answer requests of its parent.
        let process = std::process::id();
        requests.retain(|request| request.process == process);
        requests.clone()
    };
    for request in requests {
        request.answer(&thread);
    }
    // This call must come last. Until then, a request that closes without an answer of this thread may mark the thread
    // as silent.
    thread.set_silent(false);
}

/// The progress of one thread with a request.
enum ThreadProgress {
    /// The thread has not read the request yet.
    Asked,
    /// The thread waits while another thread answers.
    Queued,
    /// The thread runs a reporter. With DMD, the field is the reporter's marker.
    Answering(Option<ReporterMarker>),
    Done,
}

struct AskedThread {
    thread: Arc<LocalThread>,
    progress: ThreadProgress,
}

impl AskedThread {
    /// Whether the collection can stop waiting for the thread.
    fn is_settled(&self) -> bool {
        match self.progress {
            ThreadProgress::Done => true,
            ThreadProgress::Asked => self.thread.is_silent() || self.thread.has_ended(),
            ThreadProgress::Queued | ThreadProgress::Answering(_) => false,
        }
    }
}

/// The reports of one reporter.
pub(super) struct ReporterAnswer {
    pub(super) name: ReporterName,
    pub(super) outcome: RunOutcome,
    /// The result of releasing the reporter after its run. The release drops the reporter if the program has
    /// unregistered it meanwhile.
    pub(super) dropped: ContainedResult<()>,
    /// The index of the thread in `asked`.
    thread: usize,
}

/// The warning about a thread with missing reports.
pub(super) struct ThreadAbsence {
    pub(super) kind: WarningKind,
    pub(super) thread: String,
    pub(super) message: String,
}

/// The reports of other threads, and warnings about threads that did not answer.
pub(super) struct ThreadAnswers {
    /// Sorted by the names of the reporters.
    pub(super) answers: Vec<ReporterAnswer>,
    pub(super) absences: Vec<ThreadAbsence>,
    /// With DMD: the markers of reporters that still run.
    pub(super) late: Vec<ReporterMarker>,
}

/// Replaces a duration that is too long to add to the clock's time.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// Requests the reports of other threads, and waits for the answers. The wait takes at most the time `at_most`.
pub(super) fn ask(brief: &ReporterBrief, at_most: Duration) -> ThreadAnswers {
    let threads = local_reporters::other_threads();
    if threads.is_empty() {
        return ThreadAnswers { answers: Vec::new(), absences: Vec::new(), late: Vec::new() };
    }
    let now = Instant::now();
    let until = now.checked_add(at_most).unwrap_or(now + LONGEST);
    let asked =
        threads.into_iter().map(|thread| AskedThread { thread, progress: ThreadProgress::Asked }).collect();
    let request = Arc::new(ThreadRequest {
        brief: brief.clone(),
        process: std::process::id(),
        state: ProcessLock::new(RequestState {
            asked,
            counted: Arc::clone(&brief.counted),
            answers: Vec::new(),
            is_busy: false,
            is_closed: false,
        }),
        turn: ChangeSignal::new(),
    });
    {
        let mut requests = REQUESTS.lock();
        requests.push(Arc::clone(&request));
        NUMBER.fetch_add(1, Ordering::Relaxed);
    }
    local_reporters::wait(until, || request.state.lock().asked.iter().all(AskedThread::is_settled));
    let answers = request.close(at_most);
    REQUESTS.lock().retain(|other| !Arc::ptr_eq(other, &request));
    answers
}

/// A request of one collection to other threads.
struct ThreadRequest {
    brief: ReporterBrief,
    /// The process of the collection.
    process: u32,
    state: ProcessLock<RequestState>,
    /// Signals that a thread has ended its turn, or that the request is closed.
    turn: ChangeSignal,
}

struct RequestState {
    asked: Vec<AskedThread>,
    /// The shared blocks that reporters have counted so far.
    counted: Arc<Addresses>,
    answers: Vec<ReporterAnswer>,
    /// Whether a thread is answering.
    is_busy: bool,
    is_closed: bool,
}

impl ThreadRequest {
    /// Runs this thread's reporters if the request includes this thread and is still open.
    fn answer(&self, thread: &Arc<LocalThread>) {
        let Some(at) = self.begin_turn(thread) else { return };
        for entry in local_reporters::local_entries() {
            let marker = self.brief.run.map(MarkingRun::marker);
            let ran = self.begin(at, marker).map(|brief| {
                brief.run(marker, entry.name.text(), &mut |out| entry.reporter.collect_reports(out))
            });
            let name = entry.name.clone();
            let dropped = isolation::as_reporter(|| drop(entry));
            if let Some(outcome) = ran {
                self.end(ReporterAnswer { name, outcome, dropped, thread: at });
            }
        }
        self.end_turn(at);
    }

    /// Waits until no other thread answers. Returns the index of this thread; `None` if this thread is not part of
    /// the request or has already answered, or if the request is closed.
    fn begin_turn(&self, thread: &Arc<LocalThread>) -> Option<usize> {
        let mut state = self.state.lock();
        let at = state.asked.iter().position(|asked| Arc::ptr_eq(&asked.thread, thread))?;
        if !matches!(state.asked[at].progress, ThreadProgress::Asked) {
            return None;
        }
        state.asked[at].progress = ThreadProgress::Queued;
        loop {
            let seen = self.turn.count();
            if !state.is_busy || state.is_closed {
                break;
            }
            state = self.turn.wait(state, seen, Duration::MAX);
        }
        if state.is_closed {
            return None;
        }
        state.is_busy = true;
        state.asked[at].progress = ThreadProgress::Answering(None);
        Some(at)
    }

    /// The data for the next reporter; `None` if the request is closed.
    fn begin(&self, at: usize, marker: Option<ReporterMarker>) -> Option<ReporterBrief> {
        let mut state = self.state.lock();
        if state.is_closed {
            return None;
        }
        state.asked[at].progress = ThreadProgress::Answering(marker);
        Some(ReporterBrief { counted: Arc::clone(&state.counted), ..self.brief.clone() })
    }

    fn end(&self, answer: ReporterAnswer) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        state.asked[answer.thread].progress = ThreadProgress::Answering(None);
        if answer.outcome.panic.is_none() {
            Arc::make_mut(&mut state.counted).extend(&answer.outcome.counted);
        }
        state.answers.push(answer);
    }

    fn end_turn(&self, at: usize) {
        let mut state = self.state.lock();
        state.is_busy = false;
        state.asked[at].progress = ThreadProgress::Done;
        drop(state);
        self.turn.notify();
        local_reporters::something_changed();
    }

    /// Closes the request: no thread starts a further reporter for it. Returns the answers so far.
    fn close(&self, at_most: Duration) -> ThreadAnswers {
        let mut state = self.state.lock();
        state.is_closed = true;
        let mut answers = mem::take(&mut state.answers);
        let (mut absences, mut late) = (Vec::new(), Vec::new());
        for asked in &state.asked {
            if let ThreadProgress::Answering(Some(marker)) = asked.progress {
                late.push(marker);
            }
            absences.extend(asked.absence(self.brief.anonymize, at_most));
        }
        drop(state);
        self.turn.notify();
        sort_by(&mut answers, |a, b| a.name.text().cmp(b.name.text()).then(a.thread.cmp(&b.thread)));
        ThreadAnswers { answers, absences, late }
    }
}

impl AskedThread {
    /// The warning about this thread; `None` if the thread has answered, or has ended without reading the request.
    /// Marks a thread that missed the request as silent.
    fn absence(&self, anonymize: bool, at_most: Duration) -> Option<ThreadAbsence> {
        let (kind, why) = match self.progress {
            ThreadProgress::Done => return None,
            // A thread that has ended has dropped its reporters, so no reports are missing.
            ThreadProgress::Asked if self.thread.has_ended() => return None,
            ThreadProgress::Asked if self.thread.is_silent() => {
                let why = "it does not call memory_reporter::answer_here(), or has not called it since it missed an \
                earlier collection";
                (WarningKind::Unavailable, why.to_owned())
            }
            ThreadProgress::Asked => {
                self.thread.set_silent(true);
                let within = times::shortest(at_most);
                let why = format!("it did not call memory_reporter::answer_here() within {within}");
                (WarningKind::TimedOut, why)
            }
            ThreadProgress::Queued => {
                let why = format!("the answers of other threads took the whole {}", times::shortest(at_most));
                (WarningKind::TimedOut, why)
            }
            ThreadProgress::Answering(_) => {
                let why = format!("a reporter still ran after {}", times::shortest(at_most));
                (WarningKind::TimedOut, why)
            }
        };
        let reporters = match self.thread.reporters() {
            1 => "its reporter is".to_owned(),
            number => format!("its {number} reporters are"),
        };
        let message = match self.progress {
            ThreadProgress::Answering(_) => format!("some of its reports are missing: {why}"),
            _ => format!("{reporters} missing: {why}"),
        };
        Some(ThreadAbsence { kind, thread: self.thread.describe(anonymize), message })
    }
}
