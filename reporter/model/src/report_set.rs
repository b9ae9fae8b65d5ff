//! A compact list of reports with their warnings. A collection returns such a list, and so does the reader of files.
//!
//! A set owns all text. Paths are stored one after the other in chunks, and each process name and description is
//! stored once. A report takes 32 bytes and its path, so a million reports fit in 100 MB.

use core::fmt;
use core::slice;
use std::time::Duration;

use crate::name_pattern::NamePattern;
use crate::presence::Presence;
use crate::report::{Kind, Report, Units};
use crate::skipped::SkippedPart;
use crate::text_pool::TextPool;
use crate::warning::Warning;

/// The bytes for paths in the first chunk: few, since most sets are small.
const FIRST_CHUNK: usize = 1024;
const CHUNK: usize = 64 * 1024;

/// Reports in the order in which they were pushed, with warnings and the run of each reporter.
///
/// `memory_reporter::collect_reports` and [`file::read`](crate::file::read) return a set.
#[derive(Clone, Default)]
pub struct ReportSet {
    rows: Vec<ReportRow>,
    chunks: Vec<String>,
    processes: TextPool,
    descriptions: TextPool,
    warnings: Vec<Warning>,
    runs: Vec<ReporterRun>,
    usable_size_known: bool,
    is_partial: bool,
    is_diff: bool,
    name_patterns: Vec<NamePattern>,
}

/// The data of one report in a set.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ReportRow {
    amount: i64,
    chunk: u32,
    start: u32,
    len: u32,
    /// The number of the process's name in `processes`.
    process: u32,
    /// The number of the description in `descriptions`.
    description: u32,
    kind: Kind,
    units: Units,
    presence: Presence,
}

/// The run of one reporter in a collection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReporterRun {
    /// The reporter's name.
    pub reporter: String,
    /// The number of reports from the reporter.
    pub reports: usize,
    /// The duration of the run.
    pub time: Duration,
    /// The parts that the reporter could not measure.
    pub skipped: Vec<SkippedPart>,
}

impl ReporterRun {
    /// The run of a reporter that gave `reports` reports in this time.
    pub fn new(
        reporter: impl Into<String>,
        reports: usize,
        time: Duration,
        skipped: Vec<SkippedPart>,
    ) -> Self {
        Self { reporter: reporter.into(), reports, time, skipped }
    }
}

impl ReportSet {
    /// An empty set. [`usable_size_known`](Self::usable_size_known) is true.
    pub fn new() -> Self {
        Self { usable_size_known: true, ..Self::default() }
    }

    /// Adds a report at the end. The set does not check rules; the collector and the reader do.
    pub fn push(&mut self, report: Report<'_>) {
        self.push_change(report, Presence::Both);
    }

    /// Adds a report of a diff at the end.
    pub(crate) fn push_change(&mut self, report: Report<'_>, presence: Presence) {
        let fits = self.chunks.last().is_some_and(|c| c.len() + report.path.len() <= c.capacity());
        if !fits {
            let room = if self.chunks.is_empty() { FIRST_CHUNK } else { CHUNK };
            self.chunks.push(String::with_capacity(room.max(report.path.len())));
        }
        let chunk = self.chunks.len() - 1;
        let text = &mut self.chunks[chunk];
        let start = text.len();
        text.push_str(report.path);
        self.rows.push(ReportRow {
            amount: report.amount,
            chunk: small(chunk),
            start: small(start),
            len: small(report.path.len()),
            process: intern(&mut self.processes, report.process),
            description: intern(&mut self.descriptions, report.description),
            kind: report.kind,
            units: report.units,
            presence,
        });
    }

    /// All reports, in order.
    pub fn iter(&self) -> ReportIter<'_> {
        ReportIter { set: self, rows: self.rows.iter() }
    }

    /// The report at `index`; `None` if the set has fewer reports.
    pub fn get(&self, index: usize) -> Option<Report<'_>> {
        Some(self.view(self.rows.get(index)?))
    }

    /// The compared sets that contain the report at `index`; [`Presence::Both`] if this set is not a diff. `None` if
    /// this set has fewer reports.
    pub fn presence(&self, index: usize) -> Option<Presence> {
        Some(self.rows.get(index)?.presence)
    }

    /// The report in `row`, which must exist.
    pub(crate) fn at(&self, row: usize) -> Report<'_> {
        self.view(&self.rows[row])
    }

    /// Like [`presence`](Self::presence), for a row that must exist.
    pub(crate) fn presence_at(&self, row: usize) -> Presence {
        self.rows[row].presence
    }

    /// Whether amounts are differences of two sets. A difference may be negative.
    pub fn is_diff(&self) -> bool {
        self.is_diff
    }

    pub(crate) fn set_diff(&mut self) {
        self.is_diff = true;
    }

    /// The patterns of names that change from run to run. A program declares them with
    /// `memory_reporter::normalize_names!`.
    pub fn name_patterns(&self) -> &[NamePattern] {
        &self.name_patterns
    }

    /// Adds patterns that the set does not contain yet.
    pub fn add_name_patterns(&mut self, patterns: impl IntoIterator<Item = NamePattern>) {
        patterns.into_iter().for_each(|pattern| self.add_name_pattern(pattern));
    }

    #[inline(never)]
    fn add_name_pattern(&mut self, pattern: NamePattern) {
        if !self.name_patterns.contains(&pattern) {
            self.name_patterns.push(pattern);
        }
    }

    /// The names of all processes, each once, in the order of their first report. A name may be empty.
    pub fn processes(&self) -> impl ExactSizeIterator<Item = &str> {
        self.processes.iter()
    }

    /// For each report, in order: the index of its process in [`processes`](Self::processes).
    pub(crate) fn process_ids(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().map(|row| row.process as usize)
    }

    fn view(&self, row: &ReportRow) -> Report<'_> {
        let (start, len) = (row.start as usize, row.len as usize);
        Report {
            process: self.processes.get(row.process),
            path: &self.chunks[row.chunk as usize][start..start + len],
            kind: row.kind,
            units: row.units,
            amount: row.amount,
            description: self.descriptions.get(row.description),
        }
    }

    /// The number of reports.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no report.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Removes all reports; warnings stay.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.chunks.clear();
        self.processes = TextPool::default();
        self.descriptions = TextPool::default();
    }

    /// Moves all reports, warnings and runs of `other` to the end of this set.
    pub fn append(&mut self, other: ReportSet) {
        // Paths move chunk by chunk, so that appending a million reports copies no text.
        let first_chunk = small(self.chunks.len());
        let processes = intern_all(&mut self.processes, &other.processes);
        let descriptions = intern_all(&mut self.descriptions, &other.descriptions);
        self.chunks.extend(other.chunks);
        self.rows.extend(other.rows.into_iter().map(|row| ReportRow {
            chunk: first_chunk + row.chunk,
            process: processes[row.process as usize],
            description: descriptions[row.description as usize],
            ..row
        }));
        self.warnings.extend(other.warnings);
        self.runs.extend(other.runs);
        self.is_diff |= other.is_diff;
        self.add_name_patterns(other.name_patterns);
    }

    /// Replaces the name of every process by the result of `rename`.
    pub fn rename_processes(&mut self, mut rename: impl FnMut(&str) -> String) {
        let mut renamed = TextPool::default();
        let ids: Vec<_> = self.processes.iter().map(|name| intern(&mut renamed, &rename(name))).collect();
        for row in &mut self.rows {
            row.process = ids[row.process as usize];
        }
        self.processes = renamed;
    }

    /// Replaces the subject of every warning by the result of `rename`.
    pub fn rename_warnings(&mut self, mut rename: impl FnMut(&str) -> String) {
        for warning in &mut self.warnings {
            warning.subject = rename(&warning.subject);
        }
    }

    /// The faults of reports, reporters and processes.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Adds a warning.
    pub fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// The runs of all reporters, in the order in which they ran; empty for a set from a file.
    pub fn runs(&self) -> &[ReporterRun] {
        &self.runs
    }

    /// Adds the run of a reporter.
    pub fn add_run(&mut self, run: ReporterRun) {
        self.runs.push(run);
    }

    /// The parts that the reporters could not measure.
    pub fn skipped(&self) -> impl Iterator<Item = &SkippedPart> {
        self.runs.iter().flat_map(|run| &run.skipped)
    }

    /// Whether sizes include the bytes that the allocator adds by rounding up (`hasMozMallocUsableSize` in the file).
    pub fn usable_size_known(&self) -> bool {
        self.usable_size_known
    }

    /// Sets [`usable_size_known`](Self::usable_size_known).
    pub fn set_usable_size_known(&mut self, known: bool) {
        self.usable_size_known = known;
    }

    /// Whether the set contains the reports of some reporters only, not of a whole process. Views of such a set do
    /// not warn about a missing `heap-allocated`. Files do not store this mark.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Sets [`is_partial`](Self::is_partial).
    pub fn set_partial(&mut self, is_partial: bool) {
        self.is_partial = is_partial;
    }
}

/// The containers of a [`ReportSet`]. `memory-reporter` measures their memory.
#[doc(hidden)]
#[derive(Debug)]
pub struct SetParts<'a> {
    pub rows: &'a Vec<ReportRow>,
    pub chunks: &'a Vec<String>,
    pub texts: [&'a TextPool; 2],
    pub warnings: &'a Vec<Warning>,
    pub runs: &'a Vec<ReporterRun>,
    pub name_patterns: &'a Vec<NamePattern>,
}

impl ReportSet {
    #[doc(hidden)]
    pub fn parts(&self) -> SetParts<'_> {
        SetParts {
            rows: &self.rows,
            chunks: &self.chunks,
            texts: [&self.processes, &self.descriptions],
            warnings: &self.warnings,
            runs: &self.runs,
            name_patterns: &self.name_patterns,
        }
    }
}

/// An iterator over the reports of a set, in order: see [`ReportSet::iter`].
#[derive(Clone, Debug)]
pub struct ReportIter<'a> {
    set: &'a ReportSet,
    rows: slice::Iter<'a, ReportRow>,
}

impl<'a> Iterator for ReportIter<'a> {
    type Item = Report<'a>;

    #[inline]
    fn next(&mut self) -> Option<Report<'a>> {
        self.rows.next().map(|row| self.set.view(row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<Report<'a>> {
        self.rows.nth(n).map(|row| self.set.view(row))
    }
}

impl DoubleEndedIterator for ReportIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.next_back().map(|row| self.set.view(row))
    }
}

impl ExactSizeIterator for ReportIter<'_> {}

impl<'a> IntoIterator for &'a ReportSet {
    type Item = Report<'a>;
    type IntoIter = ReportIter<'a>;

    fn into_iter(self) -> ReportIter<'a> {
        self.iter()
    }
}

impl<'a> Extend<Report<'a>> for ReportSet {
    fn extend<I: IntoIterator<Item = Report<'a>>>(&mut self, reports: I) {
        reports.into_iter().for_each(|report| self.push(report));
    }
}

impl<'a> FromIterator<Report<'a>> for ReportSet {
    fn from_iter<I: IntoIterator<Item = Report<'a>>>(reports: I) -> Self {
        let mut set = Self::new();
        set.extend(reports);
        set
    }
}

/// Compares the reports and their order, the warnings, the patterns, [`is_diff`](ReportSet::is_diff),
/// [`presence`](ReportSet::presence) and [`usable_size_known`](ReportSet::usable_size_known). Does not compare
/// [`is_partial`](ReportSet::is_partial), nor the runs of reporters, because their times always differ.
impl PartialEq for ReportSet {
    fn eq(&self, other: &Self) -> bool {
        let presences = |set: &Self| set.rows.iter().map(|row| row.presence).collect::<Vec<_>>();
        self.is_diff == other.is_diff
            && self.usable_size_known == other.usable_size_known
            && self.warnings == other.warnings
            && self.name_patterns == other.name_patterns
            && self.iter().eq(other)
            && (!self.is_diff || presences(self) == presences(other))
    }
}

impl fmt::Debug for ReportSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportSet")
            .field("reports", &self.len())
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// Converts a length or an index. A chunk has about 64 KiB, or contains one longer path. A path is shorter than 4 GiB:
/// readers reject values of more than 64 MiB.
fn small(n: usize) -> u32 {
    u32::try_from(n).expect("report text is shorter than 4 GiB in each chunk")
}

fn intern(texts: &mut TextPool, text: &str) -> u32 {
    texts.intern(text).expect("a set has fewer than 2^32 texts")
}

/// Adds all texts of `others`, and returns their numbers in `texts`, in order.
fn intern_all(texts: &mut TextPool, others: &TextPool) -> Vec<u32> {
    others.iter().map(|text| intern(texts, text)).collect()
}
