//! A compact list of reports with their warnings. A collection returns one, and so does reading a file.
//!
//! A set owns all text. Paths are stored one after the other in chunks, and each process name and description is
//! stored once. A report takes 40 bytes and its path, so a million reports fit in 100 MB.

use core::fmt;
use core::hash::BuildHasher;
use core::slice;
use std::time::Duration;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::name_pattern::NamePattern;
use crate::presence::Presence;
use crate::report::{Kind, Report, Units};
use crate::skipped::SkippedPart;
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
    processes: TextTable,
    descriptions: TextTable,
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
    process: TextId,
    description: TextId,
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
    /// An empty set, of a process whose allocator knows usable sizes.
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
            process: self.processes.intern(report.process),
            description: self.descriptions.intern(report.description),
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
        self.processes.texts.iter().map(|name| &**name)
    }

    /// For each report, in order: the index of its process in [`processes`](Self::processes).
    pub(crate) fn process_ids(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().map(|row| row.process.0 as usize)
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
        self.processes = TextTable::default();
        self.descriptions = TextTable::default();
    }

    /// Moves all reports, warnings and runs of `other` to the end of this set.
    pub fn append(&mut self, other: ReportSet) {
        // Paths move chunk by chunk, so that appending a million reports copies no text.
        let first_chunk = small(self.chunks.len());
        let processes = self.processes.intern_all(&other.processes);
        let descriptions = self.descriptions.intern_all(&other.descriptions);
        self.chunks.extend(other.chunks);
        self.rows.extend(other.rows.into_iter().map(|row| ReportRow {
            chunk: first_chunk + row.chunk,
            process: processes[row.process.0 as usize],
            description: descriptions[row.description.0 as usize],
            ..row
        }));
        self.warnings.extend(other.warnings);
        self.runs.extend(other.runs);
        self.is_diff |= other.is_diff;
        self.add_name_patterns(other.name_patterns);
    }

    /// Replaces the name of every process by the result of `rename`.
    pub fn rename_processes(&mut self, mut rename: impl FnMut(&str) -> String) {
        let mut renamed = TextTable::default();
        let ids: Vec<_> = self.processes.texts.iter().map(|name| renamed.intern(&rename(name))).collect();
        for row in &mut self.rows {
            row.process = ids[row.process.0 as usize];
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
    pub texts: [&'a Vec<Box<str>>; 2],
    pub text_ids: [&'a HashTable<TextId>; 2],
    pub warnings: &'a Vec<Warning>,
    pub runs: &'a Vec<ReporterRun>,
    pub name_patterns: &'a Vec<NamePattern>,
}

impl ReportSet {
    #[doc(hidden)]
    pub fn parts(&self) -> SetParts<'_> {
        let (processes, descriptions) = (&self.processes, &self.descriptions);
        SetParts {
            rows: &self.rows,
            chunks: &self.chunks,
            texts: [&processes.texts, &descriptions.texts],
            text_ids: [&processes.ids, &descriptions.ids],
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

/// Compares what a file contains: the reports and their order, the warnings, the patterns,
/// [`is_diff`](ReportSet::is_diff), [`presence`](ReportSet::presence) and
/// [`usable_size_known`](ReportSet::usable_size_known). It does not compare the runs of reporters: their times always
/// differ.
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

/// Converts a length or an index. A chunk is shorter than 4 GiB: readers bound their input, and no path is that long.
fn small(n: usize) -> u32 {
    u32::try_from(n).expect("report text is shorter than 4 GiB in each chunk")
}

/// The number of a text in its [`TextTable`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextId(u32);

/// A table that stores each text once.
#[derive(Clone, Default)]
struct TextTable {
    texts: Vec<Box<str>>,
    ids: HashTable<TextId>,
    /// Seeded, since an attacker may write a file with names that collide.
    hasher: DefaultHashBuilder,
    last: Option<TextId>,
}

impl TextTable {
    fn intern(&mut self, text: &str) -> TextId {
        if let Some(last) = self.last
            && *self.texts[last.0 as usize] == *text
        {
            return last;
        }
        let hash = self.hasher.hash_one(text);
        let found = self.ids.find(hash, |id| *self.texts[id.0 as usize] == *text).copied();
        let id = found.unwrap_or_else(|| {
            let id = TextId(small(self.texts.len()));
            self.texts.push(text.into());
            let (texts, hasher) = (&self.texts, &self.hasher);
            self.ids.insert_unique(hash, id, |id| hasher.hash_one(&*texts[id.0 as usize]));
            id
        });
        self.last = Some(id);
        id
    }

    /// Adds all texts of `other`, and returns their ids in this table, in order.
    fn intern_all(&mut self, other: &Self) -> Vec<TextId> {
        other.texts.iter().map(|text| self.intern(text)).collect()
    }

    fn get(&self, id: TextId) -> &str {
        &self.texts[id.0 as usize]
    }
}
