//! The changes between two DMD dumps or recordings, by stacks.

use std::io::{self, Write as _};
use std::path::Path;

use clap::Args;
use dmd_analyze::program::{ProgramOptions, ResidentMemory, bytes};
use dmd_analyze::recording::Moment;
use dmd_analyze::{Analysis, AnalyzeError, AnalyzeOptions, Dump, DumpPeak, DumpReadOptions, StackFilter};

use super::recorded::{BlockTime, DumpOrRecording};
use super::symbols::SymbolSearch;
use super::{Failure, say};

/// Default number of stacks.
const STACKS: usize = 10;

/// Options for dumps and recordings.
#[derive(Args)]
pub(crate) struct HeapDiff {
    #[command(flatten)]
    when: BlockTime,
    /// Show at most this many rows of each table. For dumps, recordings and profiles: a row is a stack. [default: 10; 20
    /// for profiles; all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Show resident memory. For dumps: its changes by owner, and for each stack.
    #[arg(long)]
    resident: bool,
    #[command(flatten)]
    symbols: SymbolSearch,
}

impl HeapDiff {
    /// Whether the user asks for resident bytes.
    pub(super) fn resident(&self) -> bool {
        self.resident
    }

    /// The largest number of rows, if the user chose one.
    pub(super) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Fails if `--resident` is given. `sources` names the files in the error: files without resident bytes.
    pub(super) fn refuse_resident(&self, sources: &str) -> Result<(), Failure> {
        match self.resident {
            true => Err(Failure::Usage(format!("--resident is for dumps, not for {sources}"))),
            false => Ok(()),
        }
    }

    /// Writes the difference. Stacks are compared by functions and files, so that equal stacks of two builds match.
    pub(super) fn write(
        &self,
        [first, second]: [&Path; 2],
        limits: &DumpReadOptions,
        filter: Option<&str>,
        view: &ProgramOptions,
        json: bool,
    ) -> Result<(), Failure> {
        let paths = [first, second];
        let read = |path: &Path| DumpOrRecording::read(path, limits);
        let mut sources = [read(first)?, read(second)?];
        let default =
            if self.when.is_chosen() || self.resident { Moment::End } else { usual(&mut sources, paths)? };
        let [of_first, of_second] = sources;
        let select = |source, path: &Path| {
            let selected =
                self.when.select(source, path, Some(default), |dump| self.symbols.fix(dump, limits));
            selected.map(|(dump, _)| dump.without_reports())
        };
        let (before, after) = (select(of_first, first)?, select(of_second, second)?);
        let change = match self.resident {
            true => Some(change_of_memory([(&before, first), (&after, second)], view)?),
            false => None,
        };
        let memory = change.as_ref().map(|change| format!("{change}\n")).unwrap_or_default();
        let heading = match (default, before.peak(), after.peak()) {
            (Moment::Peak, Some(before), Some(after)) => at_peaks(before, after),
            _ => String::new(),
        };
        let shown = self.limit.unwrap_or(if json { usize::MAX } else { STACKS });
        let mut options = AnalyzeOptions::new()
            .max_frames(usize::MAX)
            .limit(if json { shown } else { usize::MAX })
            .types(!json)
            .without_lines(true)
            .estimate(true)
            .resident(self.resident);
        // A filter is plain text here: the backslash keeps a `!` from inverting it.
        if let Some(text) = filter {
            options = options.filter(StackFilter::new(&format!("\\{text}")));
        }
        let analysis = Analysis::difference(before, after, &options)
            .map_err(|error| Failure::File(second.display().to_string(), error.into()))?;
        if filter.is_none() && analysis.is_empty() {
            let pages = if self.resident { " with the same resident bytes" } else { "" };
            say(&format!("{} and {} have the same blocks{pages}", first.display(), second.display()));
        }
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let written = match json {
            true => match &change {
                Some(change) => write!(out, "{}", analysis.json().resident(change.json())),
                None => write!(out, "{}", analysis.json()),
            },
            false => write!(out, "{heading}{memory}{}", analysis.program_text(shown, view)),
        };
        written.and_then(|()| out.flush()).map_err(Failure::Output)
    }
}

/// Returns the resident memory of the second process, with its change since the first.
fn change_of_memory(dumps: [(&Dump, &Path); 2], view: &ProgramOptions) -> Result<ResidentMemory, Failure> {
    let memory = |(dump, path): (&Dump, &Path)| {
        let failure = |error: AnalyzeError| Failure::File(path.display().to_string(), error.into());
        dump.check_resident().map_err(failure)?;
        ResidentMemory::new(dump, view).map_err(failure)
    };
    let [before, after] = dumps;
    Ok(memory(after)?.since(&memory(before)?))
}

/// Returns the time at which two heaps are compared by default: the peak, if both heaps have a peak, and a view of one
/// of the heaps shows the peak by default. Otherwise the end. Two dumps of one process share one peak, so they are
/// always compared at the end.
fn usual(sources: &mut [DumpOrRecording; 2], paths: [&Path; 2]) -> Result<Moment, Failure> {
    if let [DumpOrRecording::Dump(first), DumpOrRecording::Dump(second)] = sources {
        let has_no_peak = first.peak().is_none() || second.peak().is_none();
        if has_no_peak || first.process() == second.process() {
            return Ok(Moment::End);
        }
    }
    let [first, second] = sources;
    let shown = [first.usual_time(paths[0])?, second.usual_time(paths[1])?];
    let has_peak = |source: &DumpOrRecording| match source {
        DumpOrRecording::Dump(dump) => dump.peak().is_some(),
        DumpOrRecording::Recording(_) => true,
    };
    let is_of_peak = shown.contains(&Moment::Peak) && has_peak(first) && has_peak(second);
    Ok(if is_of_peak { Moment::Peak } else { Moment::End })
}

/// Returns the line that names the compared times.
fn at_peaks(before: &DumpPeak, after: &DumpPeak) -> String {
    let peak = |peak: &DumpPeak| {
        let measure = if peak.is_usable() { "" } else { " requested" };
        format!("{}{measure} after {:.2} s", bytes(peak.bytes().into()), peak.seconds())
    };
    format!("Both at their peaks: {}, and {} (--at end compares the ends).\n\n", peak(before), peak(after))
}
