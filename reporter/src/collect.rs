//! The driver: runs reporters one by one, each on its own account, and gathers what they give.
//!
//! A reporter that panics, hangs or collects from inside itself loses its own reports, and a
//! warning names it. What it counted as shared is forgotten with its reports, so that later
//! reporters count it.

use core::any::Any;
use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::bridge::{Collecting, Run};
use crate::memory_reporter::MemoryReporter;
use crate::registry::{self, Entry, Turn};
use crate::report_set::{ReportSet, ReporterRun};
use crate::reports::Reports;
use crate::resident_map::ResidentMap;
use crate::skipped::{SkipReason, Skipped};
use crate::walk_state::Addresses;
use crate::warning::{Warning, WarningKind};
use crate::{allocator, amounts, builtin, consistency, dark_matter, name_pattern, pressure};

/// How to collect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CollectOptions {
    /// Reporters leave private data out of paths and descriptions. Default: no.
    pub anonymize: bool,
    /// Memory usage is minimized first. Default: no.
    pub minimize: bool,
    /// Reporters run on a thread of their own, and one that takes longer than this is given up:
    /// a warning names it, and it is not run again until it has ended. Reporters that are
    /// borrowed or belong to one thread run on the caller's thread all the same, without a limit.
    /// Default: none, all reporters run on the caller's thread.
    pub deadline: Option<Duration>,
    /// A reporter that takes longer gets a warning. Default: one second.
    pub slow: Duration,
    /// What the process is called. Default: `Main Process (pid N)`.
    pub process: Option<String>,
    /// Adds the tree `resident-map/`, which adds up to `resident`: `explicit` as far as it is in memory,
    /// and what each mapping holds beside it; and the trees `proportional-map/`, `swap-map/`,
    /// `huge-pages/` and `hugetlb/`. Reads a file of the system that takes a while in a large process.
    /// Default: no. Nothing is added where the system is not Linux.
    pub resident_map: bool,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            anonymize: false,
            minimize: false,
            deadline: None,
            slow: Duration::from_secs(1),
            process: None,
            resident_map: false,
        }
    }
}

impl CollectOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`anonymize`](Self::anonymize).
    #[must_use]
    pub fn anonymize(mut self, anonymize: bool) -> Self {
        self.anonymize = anonymize;
        self
    }

    /// Sets [`minimize`](Self::minimize).
    #[must_use]
    pub fn minimize(mut self, minimize: bool) -> Self {
        self.minimize = minimize;
        self
    }

    /// Sets [`deadline`](Self::deadline).
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets [`resident_map`](Self::resident_map).
    #[must_use]
    pub fn resident_map(mut self, resident_map: bool) -> Self {
        self.resident_map = resident_map;
        self
    }

    /// Sets [`slow`](Self::slow).
    #[must_use]
    pub fn slow(mut self, slow: Duration) -> Self {
        self.slow = slow;
        self
    }

    /// Sets [`process`](Self::process).
    #[must_use]
    pub fn process(mut self, process: impl Into<String>) -> Self {
        self.process = Some(process.into());
        self
    }
}

/// Runs all reporters of the program: the built-in ones first, then the registered ones by name,
/// then those of this thread.
///
/// Never panics and never waits for a lock of the program's own accord; with a deadline set it
/// takes at most that long for each reporter that runs on the collector's thread.
///
/// Called from inside a reporter it gives an empty set, and both this and the collection under
/// way carry a warning.
pub fn collect_reports(options: &CollectOptions) -> ReportSet {
    let Some(mut driver) = Driver::start(options, true) else { return nested() };
    for reporter in builtin::reporters() {
        driver.run(reporter);
    }
    driver.declare();
    for entry in registry::entries() {
        driver.run_entry(&entry);
    }
    for reporter in registry::local_reporters() {
        driver.run(&*reporter);
    }
    driver.finish()
}

/// A collection of one's own: exactly the reporters given, and none that are registered.
///
/// For tests, which then do not see each other, and for reporters that live on the stack.
///
/// ```
/// use memory_reporter::{Collection, MemoryReporter, Reports, collect_report};
///
/// struct Text(String);
///
/// impl MemoryReporter for Text {
///     fn collect_reports(&self, out: &mut Reports) {
///         collect_report!(out, "explicit/text", Heap, &self.0, "Memory used by the text.");
///     }
/// }
///
/// let text = Text("four".into());
/// let reports = Collection::new().with(&text).collect();
/// assert_eq!(reports.iter().next().unwrap().path, "explicit/text");
/// ```
#[derive(Default)]
pub struct Collection<'a> {
    reporters: Vec<&'a dyn MemoryReporter>,
    options: CollectOptions,
    process_rows: bool,
}

impl<'a> Collection<'a> {
    /// Without any reporter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reporter; reporters run in the order in which they were added.
    #[must_use]
    pub fn with(mut self, reporter: &'a dyn MemoryReporter) -> Self {
        self.reporters.push(reporter);
        self
    }

    /// Adds the built-in reporters of the process: `heap-allocated`, `resident` and the like.
    #[must_use]
    pub fn with_process(mut self) -> Self {
        self.process_rows = true;
        self
    }

    /// Sets how to collect.
    #[must_use]
    pub fn options(mut self, options: CollectOptions) -> Self {
        self.options = options;
        self
    }

    /// Runs the reporters, all on this thread.
    pub fn collect(&self) -> ReportSet {
        let Some(mut driver) = Driver::start(&self.options, self.process_rows) else { return nested() };
        if self.process_rows {
            for reporter in builtin::reporters() {
                driver.run(reporter);
            }
            driver.declare();
        }
        for reporter in &self.reporters {
            driver.run(*reporter);
        }
        driver.finish()
    }
}

impl core::fmt::Debug for Collection<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Collection")
            .field("reporters", &self.reporters.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reporting {
    No,
    /// A reporter runs on this thread.
    Yes,
    /// A reporter runs on this thread and has asked for a collection.
    Nested,
}

std::thread_local! {
    static REPORTING: Cell<Reporting> = const { Cell::new(Reporting::No) };
}

fn nested() -> ReportSet {
    let mut set = ReportSet::new();
    set.warn(Warning {
        kind: WarningKind::Nested,
        subject: "collect_reports".to_owned(),
        message: "called from inside a reporter; nothing was collected".to_owned(),
    });
    set
}

/// What running one reporter gave.
struct Outcome {
    set: ReportSet,
    counted: Addresses,
    skipped: Vec<Skipped>,
    time: Duration,
    nested: bool,
    panic: Option<String>,
}

/// What every reporter of a collection is told.
#[derive(Clone)]
struct Brief {
    process: Arc<str>,
    anonymize: bool,
    counted: Arc<Addresses>,
    /// With DMD.
    run: Option<Run>,
}

impl Brief {
    fn run(&self, name: &str, collect: impl FnOnce(&mut Reports)) -> Outcome {
        let mut out = Reports::new(name, &self.process, self.anonymize, &self.counted);
        let entered = self.run.map(Run::enter);
        REPORTING.set(Reporting::Yes);
        let start = Instant::now();
        let panic = catch_unwind(AssertUnwindSafe(|| collect(&mut out))).err().map(panic_message);
        let time = start.elapsed();
        drop(entered);
        let nested = REPORTING.replace(Reporting::No) == Reporting::Nested;
        let (set, state) = out.into_parts();
        let (counted, skipped) = state.into_parts();
        Outcome { set, counted, skipped, time, nested, panic }
    }
}

#[allow(clippy::mem_forget, reason = "a payload whose destructor panics over and over is given up")]
fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let message = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a text".to_owned()
    };
    // The payload is the program's: its destructor may panic too.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(second);
    }
    message
}

struct Driver<'a> {
    options: &'a CollectOptions,
    brief: Brief,
    set: ReportSet,
    collector: Option<Collector>,
    /// With DMD.
    dark_matter: Option<Collecting>,
}

impl<'a> Driver<'a> {
    /// `None` from inside a reporter. With `dark_matter`, all of the process is to be told.
    fn start(options: &'a CollectOptions, dark_matter: bool) -> Option<Self> {
        if REPORTING.get() != Reporting::No {
            REPORTING.set(Reporting::Nested);
            return None;
        }
        if options.minimize {
            pressure::minimize_memory_usage();
        }
        let process = match &options.process {
            Some(process) => process.as_str().into(),
            None => format!("Main Process (pid {})", std::process::id()).into(),
        };
        let mut set = ReportSet::new();
        set.set_usable_size_known(allocator::declared().is_some());
        set.add_name_patterns(name_pattern::linked());
        let run = Run::begin(dark_matter);
        let dark_matter = run.filter(|_| dark_matter).map(Collecting::new);
        let brief = Brief { process, anonymize: options.anonymize, counted: Arc::default(), run };
        Some(Self { options, brief, set, collector: None, dark_matter })
    }

    /// Says how to get `heap-allocated`, if it is not to be had.
    fn declare(&mut self) {
        if amounts::heap_allocated().is_none() {
            self.warn(
                WarningKind::Unavailable,
                "heap-allocated",
                "no allocator is declared; add `memory_reporter::global_allocator!(std::alloc::System);`",
            );
        }
    }

    /// On this thread.
    fn run(&mut self, reporter: &dyn MemoryReporter) {
        let outcome = self.brief.run(reporter.name(), |out| reporter.collect_reports(out));
        self.absorb(reporter.name(), outcome);
    }

    fn run_entry(&mut self, entry: &Arc<Entry>) {
        match entry.turn() {
            Turn::Gone => {}
            Turn::Stuck => {
                self.warn(WarningKind::TimedOut, entry.name(), "still runs since an earlier collection");
            }
            Turn::Run(running) => {
                let Some(deadline) = self.options.deadline else {
                    let outcome = running
                        .run(|reporter| self.brief.run(entry.name(), |out| reporter.collect_reports(out)));
                    drop(running);
                    return self.absorb(entry.name(), outcome);
                };
                let brief = self.brief.clone();
                let name = entry.name().to_owned();
                let job = Box::new(move || {
                    running.run(|reporter| brief.run(&name, |out| reporter.collect_reports(out)))
                });
                match self.on_collector(job, deadline) {
                    Answer::Outcome(outcome) => self.absorb(entry.name(), *outcome),
                    Answer::TimedOut => {
                        entry.found_stuck();
                        let message = format!("did not answer within {deadline:?}");
                        self.warn(WarningKind::TimedOut, entry.name(), &message);
                    }
                    Answer::NoThread(error) => {
                        let message = format!("no thread to run it on: {error}");
                        self.warn(WarningKind::Unavailable, entry.name(), &message);
                    }
                }
            }
        }
    }

    fn on_collector(&mut self, job: Job, deadline: Duration) -> Answer {
        let collector = match self.collector.take().map_or_else(Collector::start, Ok) {
            Ok(collector) => collector,
            Err(error) => return Answer::NoThread(error),
        };
        match collector.run(job, deadline) {
            Some(outcome) => {
                self.collector = Some(collector);
                Answer::Outcome(Box::new(outcome))
            }
            // The thread is left to itself; the next reporter gets another.
            None => Answer::TimedOut,
        }
    }

    fn absorb(&mut self, name: &str, outcome: Outcome) {
        if outcome.nested {
            self.warn(WarningKind::Nested, name, "called collect_reports; nothing was collected there");
        }
        if outcome.time > self.options.slow {
            self.warn(WarningKind::Slow, name, &format!("took {:.1} s", outcome.time.as_secs_f64()));
        }
        if let Some(message) = outcome.panic {
            let message = format!("panicked, its reports are left out: {}", message.escape_debug());
            return self.warn(WarningKind::Panicked, name, &message);
        }
        // What a lock hid is there another time; what a type never shows would be said every time.
        for skipped in outcome.skipped.iter().filter(|skipped| skipped.reason != SkipReason::Opaque) {
            self.warn(WarningKind::Unavailable, name, &format!("not measured: {skipped}"));
        }
        Arc::make_mut(&mut self.brief.counted).extend(outcome.counted);
        self.set.add_run(ReporterRun {
            reporter: name.to_owned(),
            reports: outcome.set.len(),
            time: outcome.time,
            skipped: outcome.skipped,
        });
        self.set.append(outcome.set);
    }

    fn warn(&mut self, kind: WarningKind, subject: &str, message: &str) {
        self.set.warn(Warning { kind, subject: subject.to_owned(), message: message.to_owned() });
    }

    fn finish(mut self) -> ReportSet {
        if let Some(collecting) = self.dark_matter.take() {
            let process = Arc::clone(&self.brief.process);
            if !dark_matter::add(&mut self.set, &process, collecting) {
                let message = "other reports were collected meanwhile: dark matter is not told";
                self.warn(WarningKind::Unavailable, "heap-unclassified", message);
            }
        }
        if self.options.resident_map {
            // Last: it is beside what the others report.
            self.run(&ResidentMap::beside(&self.set));
        }
        consistency::check(&mut self.set);
        self.set
    }
}

type Job = Box<dyn FnOnce() -> Outcome + Send>;

enum Answer {
    Outcome(Box<Outcome>),
    TimedOut,
    NoThread(std::io::Error),
}

/// The thread that runs reporters when there is a deadline. It ends with the collection, or when
/// its job ends after it was given up.
struct Collector {
    jobs: mpsc::Sender<Job>,
    outcomes: mpsc::Receiver<Outcome>,
}

impl Collector {
    fn start() -> std::io::Result<Self> {
        let (jobs, to_do) = mpsc::channel::<Job>();
        let (done, outcomes) = mpsc::channel();
        thread::Builder::new().name("memory-reporter".to_owned()).spawn(move || {
            for job in to_do {
                if done.send(job()).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { jobs, outcomes })
    }

    fn run(&self, job: Job, deadline: Duration) -> Option<Outcome> {
        self.jobs.send(job).ok()?;
        self.outcomes.recv_timeout(deadline).ok()
    }
}
