//! The driver: runs reporters one after the other and collects their reports.
//!
//! A reporter that panics or hangs loses its own reports, and a warning names it. The driver then forgets the shared
//! blocks that this reporter counted, so that later reporters count them.

use std::sync::Arc;
use std::time::Duration;

use memory_report::{Kind, ReportSet, ReporterRun, SkipReason, Warning, WarningKind};

use crate::allocator;
use crate::engine_abi::{self, DarkMatterCollection, MarkingRun, ReporterMarker};
use crate::measure::TaggedBytes;
use crate::reporting::isolation::{self, ContainedResult};
use crate::reporting::registry::{self, EntryTurn, RegistryEntry};
use crate::reporting::tags::{Tag, TagGuard};
use crate::reporting::{
    ByAmount, MemoryReporter, ReporterName, ResidentMap, amounts, builtin, local_reporters, name_pattern,
};

use super::admission::{self, CollectRight};
use super::collector::{CollectorJob, CollectorThread};
use super::one_run::{ReporterBrief, RunOutcome};
use super::tag_rows::TagRows;
use super::{answer_here, consistency, dark_matter, pressure, times};

/// The options of a collection.
#[derive(Clone, Debug)]
pub struct CollectOptions {
    anonymize: bool,
    minimize: bool,
    pub(crate) deadline: Option<Duration>,
    pub(super) ask_threads: Option<Duration>,
    dark_matter: bool,
    slow: Duration,
    process: Option<String>,
    resident_map: bool,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            anonymize: false,
            minimize: false,
            deadline: None,
            ask_threads: None,
            dark_matter: true,
            slow: Duration::from_secs(1),
            process: None,
            resident_map: false,
        }
    }
}

impl CollectOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reporters leave private data out of paths and descriptions. Default: no.
    #[must_use]
    pub fn anonymize(mut self, anonymize: bool) -> Self {
        self.anonymize = anonymize;
        self
    }

    /// The collection minimizes memory usage first. Default: no.
    #[must_use]
    pub fn minimize(mut self, minimize: bool) -> Self {
        self.minimize = minimize;
        self
    }

    /// Runs registered reporters on a separate thread. The collection stops waiting for a reporter that takes longer
    /// than `deadline`: a warning names the reporter, and no collection runs it again until this run has ended. The
    /// caller's thread still runs built-in reporters, borrowed reporters and its own local reporters, without a limit.
    /// Default: no deadline. Without a deadline, registered reporters also run on the caller's thread. If a reporter
    /// never returns, the collection never returns.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Includes the reporters that other threads registered by [`register_local`](crate::register_local). Each of these
    /// threads runs its reporters when it calls [`answer_here`](crate::answer_here). After all other reporters have
    /// run, the collection waits for these threads, for at most `at_most` in total, and warns about threads that do not
    /// answer. A thread that missed a collection still receives requests, but collections do not wait for it until it
    /// calls `answer_here` again. Default: the collection does not include other threads. Live requests set a quarter
    /// of their deadline.
    #[must_use]
    pub fn ask_threads(mut self, at_most: Duration) -> Self {
        self.ask_threads = Some(at_most);
        self
    }

    /// Adds the tree `resident-map/`. It adds up to `resident`: the resident part of `explicit`, and the other
    /// resident bytes of each mapping. Also adds the trees `proportional-map/`, `swap-map/`, `huge-pages/` and
    /// `hugetlb/`. For these trees the collection reads a file of the system. This is slow in a large process.
    /// Default: no. On systems other than Linux the option adds only a warning.
    #[must_use]
    pub fn resident_map(mut self, resident_map: bool) -> Self {
        self.resident_map = resident_map;
        self
    }

    /// While DMD records in dark-matter mode, the collection marks the blocks that it counts. Below
    /// `explicit/heap-unclassified` it then adds DMD's rows about all other blocks. For the rows, DMD looks up
    /// symbols in this process: with much debug information the lookup takes seconds, and more memory than the
    /// program. Default: yes.
    #[must_use]
    pub fn dark_matter(mut self, dark_matter: bool) -> Self {
        self.dark_matter = dark_matter;
        self
    }

    /// Warns about a reporter that takes longer than `slow`. Default: one second.
    #[must_use]
    pub fn slow(mut self, slow: Duration) -> Self {
        self.slow = slow;
        self
    }

    /// Sets the name of the process. Default: `Main Process (pid N)`.
    #[must_use]
    pub fn process(mut self, process: impl Into<String>) -> Self {
        self.process = Some(process.into());
        self
    }
}

/// Runs all reporters of the program: first the built-in reporters, then the registered reporters by name, then the
/// reporters of this thread. With [`CollectOptions::ask_threads`], the reporters of other threads follow, by name.
///
/// The function never panics. With a deadline, each reporter that runs on the separate thread delays the call by at
/// most the deadline.
///
/// A call from inside a reporter returns an empty set. This set and the set of the current collection both contain a
/// warning. A reporter must not start a collection on another thread either. At most 32 collections run at the same
/// time. Further collections return empty sets with a warning. The set of the collection that ran the reporter at
/// fault also contains a warning.
pub fn collect_reports(options: &CollectOptions) -> ReportSet {
    let mut driver = match CollectionDriver::start(options, true) {
        Ok(driver) => driver,
        Err(why) => return nothing(why),
    };
    // Get the entries before the built-in reporters run: the first call creates the entries of linked reporters, and
    // a built-in reporter measures all entries.
    let entries = registry::entries();
    driver.run_builtin();
    for entry in entries {
        driver.run_entry(&entry);
        let name = entry.name().clone();
        driver.gone(&name, isolation::as_reporter(|| drop(entry)));
    }
    for entry in local_reporters::local_entries() {
        driver.run(&entry.name, &*entry.reporter);
        let name = entry.name.clone();
        driver.gone(&name, isolation::as_reporter(|| drop(entry)));
    }
    if let Some(at_most) = options.ask_threads {
        driver.run_on_other_threads(at_most);
    }
    driver.run_tags();
    driver.finish()
}

/// [`collect_reports`] with the default options.
pub fn collect() -> ReportSet {
    collect_reports(&CollectOptions::new())
}

/// A collection of exactly the reporters given to it, without the registered reporters.
///
/// Use it for reporters on the stack, and for tests: a test then does not see the reporters of other tests. Without
/// [`with_process`](Self::with_process), the program need not declare an allocator, and gets no warning about it.
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
    /// A collection without reporters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reporter. Reporters run in the order in which they were added.
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

    /// Sets the options of the collection.
    #[must_use]
    pub fn options(mut self, options: CollectOptions) -> Self {
        self.options = options;
        self
    }

    /// Runs the reporters, all on this thread.
    pub fn collect(&self) -> ReportSet {
        let mut driver = match CollectionDriver::start(&self.options, self.process_rows) {
            Ok(driver) => driver,
            Err(why) => return nothing(why),
        };
        if self.process_rows {
            driver.run_builtin();
        }
        driver.set.set_partial(!self.process_rows);
        for reporter in &self.reporters {
            driver.run(&ReporterName::ask(*reporter), *reporter);
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

/// The set of a collection that was refused: empty, with a warning.
fn nothing(why: String) -> ReportSet {
    let mut set = ReportSet::new();
    set.warn(Warning::new(WarningKind::Nested, "collect_reports", why));
    set
}

struct CollectionDriver<'a> {
    options: &'a CollectOptions,
    brief: ReporterBrief,
    set: ReportSet,
    collector: Option<CollectorThread<EntryRun>>,
    /// The blocks with a tag that reporters have counted.
    tagged: TaggedBytes,
    /// With DMD: the running dark-matter collection.
    dark_matter: Option<DarkMatterCollection>,
    /// With DMD: the claims without blocks, of all reporters so far.
    by_amount: Vec<ByAmount>,
    _admitted: CollectRight,
    /// While this guard exists, blocks that this thread allocates have no tag.
    _untagged: TagGuard,
    /// With DMD: the markers of reporters that did not answer in time.
    late: Vec<ReporterMarker>,
    /// The number of refused collections when this collection started, or when it last warned about refused
    /// collections.
    refused: u64,
}

impl<'a> CollectionDriver<'a> {
    /// Starts a collection. The error is the reason why the collection must not start. `dark_matter` is whether the
    /// collection includes the built-in reporters, so that it can attribute unreported memory.
    fn start(options: &'a CollectOptions, dark_matter: bool) -> Result<Self, String> {
        if isolation::is_nested() {
            return Err("called from inside a reporter; nothing was collected".to_owned());
        }
        let untagged = Tag::NONE.enter();
        let (admitted, refused) = (admission::admit()?, admission::refused());
        if options.minimize {
            pressure::minimize_memory_usage();
        }
        let process = match &options.process {
            Some(process) => process.as_str().into(),
            None => format!("Main Process (pid {})", std::process::id()).into(),
        };
        let mut set = ReportSet::new();
        // A declared allocator returns usable sizes. So does an engine that records all blocks.
        let usable_size_known = allocator::declared().is_some() || engine_abi::records_program();
        set.set_usable_size_known(usable_size_known);
        set.add_name_patterns(name_pattern::linked());
        // Without a run, this collection marks no blocks, and the marks of other runs stay unchanged.
        let run = if options.dark_matter { MarkingRun::begin(dark_matter) } else { None };
        let dark_matter = run.filter(|_| dark_matter).map(DarkMatterCollection::new);
        let (taken, counted) = (Arc::default(), Arc::default());
        let brief = ReporterBrief { process, anonymize: options.anonymize, taken, counted, run };
        Ok(Self {
            options,
            brief,
            set,
            collector: None,
            tagged: TaggedBytes::default(),
            dark_matter,
            by_amount: Vec::new(),
            _admitted: admitted,
            _untagged: untagged,
            late: Vec::new(),
            refused,
        })
    }

    /// Runs the built-in reporters. Warns if `heap-allocated` is missing. Records the paths of the reports of kind
    /// `Other`, which the program's reporters must not use.
    fn run_builtin(&mut self) {
        for reporter in builtin::reporters() {
            self.run(&ReporterName::ask(reporter), reporter);
        }
        let rows = self.set.iter().filter(|report| report.kind == Kind::Other);
        self.brief.taken = rows.map(|report| report.path.to_owned()).collect();
        if amounts::heap_allocated().is_none() {
            self.warn(
                WarningKind::Unavailable,
                "heap-allocated",
                "no allocator is declared; add `memory_reporter::global_allocator!(std::alloc::System);`",
            );
        }
    }

    /// Runs a reporter on this thread.
    fn run(&mut self, name: &ReporterName, reporter: &dyn MemoryReporter) {
        let marker = self.brief.run.map(MarkingRun::marker);
        let outcome = self.brief.run(marker, name.text(), &mut |out| reporter.collect_reports(out));
        self.absorb(name, outcome);
    }

    /// Runs the reporter for tags after all other reporters, since their reports take precedence over tags.
    fn run_tags(&mut self) {
        let counted = core::mem::take(&mut self.tagged);
        if let Some(reporter) = TagRows::beside(&counted) {
            self.run(&ReporterName::ask(&reporter), &reporter);
        }
    }

    fn run_entry(&mut self, entry: &Arc<RegistryEntry>) {
        match entry.turn() {
            EntryTurn::Gone => {}
            EntryTurn::Stuck => {
                let message = "has been running since an earlier collection; its reports are missing";
                self.warn(WarningKind::TimedOut, entry.name().text(), message);
            }
            EntryTurn::Run(running) => {
                let (brief, name) = (self.brief.clone(), entry.name().text().to_owned());
                let marker = brief.run.map(MarkingRun::marker);
                let job = move || {
                    running.run(|reporter| brief.run(marker, &name, &mut |out| reporter.collect_reports(out)))
                };
                let answer = match self.options.deadline {
                    None => Answer::Given(Box::new(job())),
                    Some(deadline) => self.on_collector(Box::new(job), deadline),
                };
                match answer {
                    Answer::Given(given) => {
                        let (outcome, dropped) = *given;
                        self.absorb(entry.name(), outcome);
                        self.gone(entry.name(), dropped);
                    }
                    Answer::TimedOut(deadline) => {
                        entry.found_stuck();
                        if let Some(marker) = marker {
                            // The reports are left out, and so are the marks: a block has room for few marks, and the
                            // next reporters need this room.
                            marker.withdraw(&[]);
                            self.late.push(marker);
                        }
                        let message = format!("did not answer within {}", times::shortest(deadline));
                        self.warn(WarningKind::TimedOut, entry.name().text(), &message);
                    }
                    Answer::NoThread(error) => {
                        let message = format!("could not start a thread for it: {error}");
                        self.warn(WarningKind::Unavailable, entry.name().text(), &message);
                    }
                }
            }
        }
    }

    fn on_collector(&mut self, job: CollectorJob<EntryRun>, deadline: Duration) -> Answer {
        let collector = match self.collector.take().map_or_else(CollectorThread::start, Ok) {
            Ok(collector) => collector,
            Err(error) => return Answer::NoThread(error),
        };
        match collector.run(job, deadline) {
            Some(given) => {
                self.collector = Some(collector);
                Answer::Given(Box::new(given))
            }
            // The job still runs on the collector's thread, so the next reporter gets a new thread.
            None => Answer::TimedOut(deadline),
        }
    }

    fn run_on_other_threads(&mut self, at_most: Duration) {
        let asked = answer_here::ask(&self.brief, at_most);
        for marker in asked.late {
            marker.withdraw(&[]);
            self.late.push(marker);
        }
        for answer in asked.answers {
            self.absorb(&answer.name, answer.outcome);
            self.gone(&answer.name, answer.dropped);
        }
        for absence in asked.absences {
            self.warn(absence.kind, &absence.thread, &absence.message);
        }
    }

    fn absorb(&mut self, name: &ReporterName, outcome: RunOutcome) {
        let fault = name.warning();
        let name = name.text();
        if let Some((kind, message)) = fault {
            self.warn(kind, name, message);
        }
        if outcome.refused {
            self.refused = admission::refused();
            let message = "while it ran, collections were refused because too many ran at the same time; a \
                           reporter must not start a collection on another thread";
            self.warn(WarningKind::Nested, name, message);
        }
        if outcome.nested {
            self.warn(WarningKind::Nested, name, "called collect_reports; nothing was collected there");
        }
        if outcome.time > self.options.slow {
            let took = times::tenths(outcome.time);
            let advice = "report a counter or a part of the values, or raise CollectOptions::slow";
            self.warn(WarningKind::Slow, name, &format!("took {took} s: {advice}"));
        }
        if let Some(message) = outcome.panic {
            let mut message = format!("panicked, its reports are left out: {}", message.escape_debug());
            for part in outcome.skipped.iter().filter(|part| part.reason == SkipReason::Panicked) {
                message.push_str(&format!("; {part}"));
            }
            return self.warn(WarningKind::Panicked, name, &message);
        }
        // A later collection may find a lock free, but never measures an opaque type. A warning about an opaque type
        // would be repeated in each collection.
        for skipped in outcome.skipped.iter().filter(|skipped| skipped.reason != SkipReason::Opaque) {
            self.warn(WarningKind::Unavailable, name, &format!("not measured: {skipped}"));
        }
        Arc::make_mut(&mut self.brief.counted).extend(outcome.counted);
        self.tagged.append(outcome.tagged);
        self.set.add_run(ReporterRun::new(name, outcome.set.len(), outcome.time, outcome.skipped));
        self.by_amount.extend(outcome.by_amount);
        self.set.append(outcome.set);
    }

    /// Handles the result of dropping the reporter: the program may have unregistered the reporter during its run.
    fn gone(&mut self, name: &ReporterName, dropped: ContainedResult<()>) {
        if dropped.nested {
            let message = "its destructor called collect_reports; nothing was collected there";
            self.warn(WarningKind::Nested, name.text(), message);
        }
        if let Err(panic) = dropped.result {
            let message = format!("its destructor panicked, its reports are kept: {}", panic.escape_debug());
            self.warn(WarningKind::Panicked, name.text(), &message);
        }
    }

    fn warn(&mut self, kind: WarningKind, subject: &str, message: &str) {
        self.set.warn(Warning::new(kind, subject, message));
    }

    fn finish(mut self) -> ReportSet {
        // Withdraws the marks of late reporters again, as late as possible: such reporters may have marked more blocks.
        self.late.iter().for_each(|late| late.withdraw(&[]));
        if let Some(collecting) = self.dark_matter.take() {
            let process = Arc::clone(&self.brief.process);
            if !dark_matter::add(&mut self.set, &process, collecting, &self.by_amount) {
                let message = "unreported memory is not attributed: another collection ran at the same time";
                self.warn(WarningKind::Unavailable, "heap-unclassified", message);
            }
        }
        if self.options.resident_map {
            // Runs last, since it subtracts the reports of all other reporters.
            let reporter = ResidentMap::beside(&self.set);
            self.run(&ReporterName::ask(&reporter), &reporter);
        }
        if admission::refused() != self.refused {
            let message = "further collections were refused meanwhile: too many ran at the same time";
            self.warn(WarningKind::Nested, "collect_reports", message);
        }
        consistency::check(&mut self.set);
        self.set
    }
}

/// The result of running an entry, and the result of dropping its reporter.
type EntryRun = (RunOutcome, ContainedResult<()>);

enum Answer {
    Given(Box<EntryRun>),
    TimedOut(Duration),
    NoThread(std::io::Error),
}
