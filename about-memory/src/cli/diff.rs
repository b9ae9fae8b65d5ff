//! `about-memory diff`: what changed between two reports, and whether the changes exceed limits.

pub(super) mod profiles;

use std::io::{self, Write};

use about_memory::{
    DiffOptions, Limit, LimitError, LimitOutcome, NormalizeRule, PathFilter, changes, check_limits,
};
use clap::Args;
use dmd_analyze::recording::Recording;
use memory_report::ReportSet;
use memory_report::diff::{Diff, Presence, ReportChange};
use serde::Serialize;

use super::file_kind::is_pprof;
use super::heap_diff::HeapDiff;
use super::html::has_blocks;
use super::input::{InputArgument, ReadLimits, say_warnings};
use super::program_view::{self, on_terminal};
use super::view::TreeView;
use super::{Failure, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory diff before.json.gz after.json.gz
  about-memory diff before.json.gz after.json.gz --filter explicit/cache --verbose
  about-memory diff before.json.gz 1234
  about-memory diff before.pb.gz after.pb.gz
  about-memory diff before.json after.json --fail-if 'explicit > +5%' --fail-if 'explicit/cache > 64MiB'
  about-memory diff before.json after.json --fail-if '[Main Process] resident >= +10 MiB' --json
  about-memory diff before.json after.json --normalize 'session\\(id=[0-9]+\\)=>session(id=N)'

A condition is a PATH, one of < <= > >= ==, and a limit: 64MiB is an amount in the second report;
+5% and +10 MiB are growth since the first. kB, MB and GB are powers of 1,000. The amount is the sum over all processes;
[NAME] PATH > 5 MiB counts only processes whose name contains NAME. If only one report has the path, the other report
counts as 0.

For two pprof profiles, the text shows the stacks whose memory changed the most, the largest change first. Functions are
compared by name and file, without lines.

Two DMD dumps or recordings are compared by stacks: by functions and files, not by lines, so that two builds of a
program can be compared. If both heaps have a peak, and one of them has shrunk by a tenth since its peak, the blocks at
the two peaks are compared. Otherwise, and for two dumps of one process, the blocks at the two ends are compared. --at
and --between choose another time.
  about-memory diff before.dmdrec after.dmdrec --at peak
  about-memory diff dmd-1.json.gz dmd-2.json.gz --filter my_crate::
  about-memory diff dmd-1.json.gz dmd-2.json.gz --resident

Before the comparison of reports, Firefox's rules replace the parts of names that change from run to run
(pid 12, tid=12, addresses). Then the rules that the reports contain replace other parts: see normalize_names! of
the crate memory-reporter.

Exit status: 0 on success, 1 if a file cannot be read, 2 for wrong usage, 3 if a condition of
--fail-if is true or neither report contains its path.";

#[derive(Args)]
pub(crate) struct DiffCommand {
    /// The earlier source: a report file, compressed or not, `-` for standard input; the process id or the name of a
    /// running process; a pprof profile, a DMD dump or a recording.
    first: InputArgument,
    /// The later source, of the same kind.
    second: InputArgument,
    #[command(flatten)]
    view: TreeView,
    /// Exit with status 3 if this condition is true. Repeatable.
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Limit>,
    /// Replace matches of this regular expression in all names before the comparison. Repeatable.
    #[arg(long, value_name = "REGEX=>REPLACEMENT", value_parser = NormalizeRule::parse)]
    normalize: Vec<NormalizeRule>,
    /// Write JSON instead of text. The JSON contains each change with both amounts, and each condition.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    heaps: HeapDiff,
    #[command(flatten)]
    reading: ReadLimits,
}

impl DiffCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        if is_pprof(self.first.path()) && is_pprof(self.second.path()) {
            if !self.fail_if.is_empty() || !self.normalize.is_empty() {
                return Err(Failure::Usage(
                    "--fail-if and --normalize are for reports, not for pprof profiles".to_owned(),
                ));
            }
            self.refuse_view_except(&["--verbose"], "pprof profiles")?;
            self.heaps.refuse_resident("pprof profiles")?;
            let (limit, max_bytes) = (self.heaps.limit(), self.reading.max_bytes());
            return profiles::run(&self.first, &self.second, self.json, limit, max_bytes);
        }
        let filter = self.view.filter()?;
        let options = self.normalize.iter().cloned().fold(DiffOptions::new(), DiffOptions::normalize);
        if Recording::is_at(self.first.path()) || Recording::is_at(self.second.path()) {
            return self.write_heap_diff();
        }
        let (first, second) = match InputArgument::read_two(&self.first, &self.second, &self.reading) {
            Err(Failure::File(name, error)) if has_blocks(&name, &error) => return self.write_heap_diff(),
            read => read?,
        };
        self.heaps.refuse_resident("reports")?;
        let usage = |error: about_memory::NormalizeError| Failure::Usage(error.to_string());
        let verdicts = match self.fail_if.as_slice() {
            [] => Vec::new(),
            limits => check_limits(&first, &second, &options, limits).map_err(usage)?,
        };
        let checked: Vec<ConditionOutcome> = self
            .fail_if
            .iter()
            .zip(verdicts)
            .map(|(limit, verdict)| ConditionOutcome::new(limit, verdict))
            .collect();
        let changes = changes(&first, &second, &options).map_err(usage)?;
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        if self.json {
            self.write_json(&mut out, &changes, filter.as_ref(), &checked).map_err(Failure::Output)?;
        } else {
            let set = changes.to_set();
            // The text does not need the changes. They are freed before the trees take memory.
            drop(changes);
            drop((first, second));
            self.write_text(&mut out, &set, filter).map_err(Failure::Output)?;
        }
        out.flush().map_err(Failure::Output)?;
        let reasons: Vec<_> = checked.into_iter().filter(|c| c.failed).map(|c| c.reason).collect();
        if reasons.is_empty() { Ok(()) } else { Err(Failure::Exceeded(reasons)) }
    }

    /// Fails if the user gave an option of trees and this option is not in `effective`. `sources` names the sources in
    /// the error.
    fn refuse_view_except(&self, effective: &[&str], sources: &str) -> Result<(), Failure> {
        match self.view.used().find(|option| !effective.contains(option)) {
            Some(option) => Err(Failure::Usage(format!("{option} is for reports, not for {sources}"))),
            None => Ok(()),
        }
    }

    /// Writes the difference of two dumps or recordings.
    fn write_heap_diff(&self) -> Result<(), Failure> {
        if !self.fail_if.is_empty() || !self.normalize.is_empty() {
            let reason = "--fail-if and --normalize are for reports; limit the leaks of a dump or a recording with: \
                          about-memory leaks FILE --fail-above BYTES";
            return Err(Failure::Usage(reason.to_owned()));
        }
        self.refuse_view_except(&["--verbose", "--filter"], "dumps and recordings")?;
        if self.first.is_stdin() || self.second.is_stdin() {
            return Err(Failure::Usage(
                "two dumps or recordings must be two files; standard input is not allowed".to_owned(),
            ));
        }
        let view = program_view::options(on_terminal()).verbose(self.view.is_verbose());
        let view = view.resident(self.heaps.resident());
        let paths = [self.first.path(), self.second.path()];
        self.heaps.write(paths, &self.reading.dump_options(), self.view.filter_text(), &view, self.json)
    }

    fn write_text(&self, mut out: impl Write, set: &ReportSet, filter: Option<PathFilter>) -> io::Result<()> {
        // With --fail-if, standard error contains only the outcomes of the conditions.
        if set.is_empty() && self.fail_if.is_empty() {
            say(&format!("{} and {} have the same reports", self.first.name(), self.second.name()));
        }
        let text = self.view.apply(about_memory::text(set), filter);
        say_warnings(&format!("{} and {}", self.first.name(), self.second.name()), text.warnings().count());
        write!(out, "{text}")
    }

    /// Writes each change directly to `out`, on one line, so that a million changes need little memory.
    fn write_json(
        &self,
        mut out: impl Write,
        changes: &Diff<'_>,
        filter: Option<&PathFilter>,
        checked: &[ConditionOutcome],
    ) -> io::Result<()> {
        let warnings: Vec<String> = changes.warnings().iter().map(ToString::to_string).collect();
        let names = (self.first.name(), self.second.name());
        out.write_all(b"{\n \"first\": ")?;
        serde_json::to_writer(&mut out, &names.0)?;
        out.write_all(b",\n \"second\": ")?;
        serde_json::to_writer(&mut out, &names.1)?;
        out.write_all(b",\n \"conditions\": ")?;
        serde_json::to_writer(&mut out, checked)?;
        out.write_all(b",\n \"warnings\": ")?;
        serde_json::to_writer(&mut out, &warnings)?;
        out.write_all(b",\n \"changes\": [")?;
        let mut before = "\n  ";
        for change in changes.changes() {
            let process = changes.process(change);
            let shown = self.view.shows_process(process)
                && filter.is_none_or(|filter| filter.accepts(&change.path))
                && change.amount() != 0;
            if shown {
                out.write_all(before.as_bytes())?;
                serde_json::to_writer(&mut out, &ChangedReport::new(process, change))?;
                before = ",\n  ";
            }
        }
        out.write_all(b"\n ]\n}\n")
    }
}

/// A condition of `--fail-if` and its outcome.
#[derive(Serialize)]
struct ConditionOutcome {
    condition: String,
    first: Option<i128>,
    second: Option<i128>,
    failed: bool,
    reason: String,
}

impl ConditionOutcome {
    fn new(limit: &Limit, verdict: Result<LimitOutcome, LimitError>) -> Self {
        let condition = limit.to_string();
        match verdict {
            Ok(verdict) => Self {
                first: verdict.first,
                second: verdict.second,
                failed: verdict.holds,
                reason: format!("{condition}: {verdict}"),
                condition,
            },
            Err(error) => {
                let (first, second) = (None, None);
                Self { condition, first, second, failed: true, reason: error.to_string() }
            }
        }
    }
}

/// A report that changed.
#[derive(Serialize)]
struct ChangedReport<'c> {
    process: &'c str,
    path: &'c str,
    kind: String,
    units: String,
    first: Option<i128>,
    second: Option<i128>,
    change: i128,
    presence: &'static str,
}

impl<'c> ChangedReport<'c> {
    fn new(process: &'c str, change: &'c ReportChange<'_>) -> Self {
        Self {
            process,
            path: &change.path,
            kind: change.kind.to_string(),
            units: change.units.to_string(),
            first: change.first(),
            second: change.second(),
            change: change.amount(),
            presence: match change.presence() {
                Presence::Both => "both",
                Presence::FirstOnly => "first",
                Presence::SecondOnly => "second",
            },
        }
    }
}
