//! The changes between two DMD dumps or recordings, by stacks.

use std::io::{self, Write as _};
use std::path::Path;

use clap::Args;
use dmd_analyze::program::ProgramOptions;
use dmd_analyze::recording::Moment;
use dmd_analyze::{Analysis, AnalyzeOptions, DumpReadOptions, StackFilter};

use super::recorded::BlockTime;
use super::symbols::SymbolSearch;
use super::{Failure, say};

/// Default number of stacks.
const STACKS: usize = 10;

/// Options for dumps and recordings.
#[derive(Args)]
pub(crate) struct HeapDiff {
    #[command(flatten)]
    when: BlockTime,
    /// Show at most this many rows of each table. For dumps and recordings: a row is a stack. [default: 10; all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    symbols: SymbolSearch,
}

impl HeapDiff {
    /// Writes the difference. Stacks are compared by functions and files, so that equal stacks of two builds match.
    pub(super) fn write(
        &self,
        [first, second]: [&Path; 2],
        limits: &DumpReadOptions,
        filter: Option<&str>,
        view: &ProgramOptions,
        json: bool,
    ) -> Result<(), Failure> {
        let read = |path: &Path| {
            let read = self.when.read(path, limits, Some(Moment::End), |dump| self.symbols.fix(dump, limits));
            read.map(|(dump, _)| dump.without_reports())
        };
        let (before, after) = (read(first)?, read(second)?);
        let shown = self.limit.unwrap_or(if json { usize::MAX } else { STACKS });
        let mut options = AnalyzeOptions::new()
            .max_frames(usize::MAX)
            .limit(if json { shown } else { usize::MAX })
            .types(!json)
            .without_lines(true)
            .estimate(true);
        // A filter is plain text here: the backslash keeps a `!` from inverting it.
        if let Some(text) = filter {
            options = options.filter(StackFilter::new(&format!("\\{text}")));
        }
        let analysis = Analysis::difference(before, after, &options)
            .map_err(|error| Failure::File(second.display().to_string(), error.into()))?;
        if filter.is_none() && analysis.is_empty() {
            say(&format!("{} and {} have the same blocks", first.display(), second.display()));
        }
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let written = match json {
            true => write!(out, "{}", analysis.json()),
            false => write!(out, "{}", analysis.program_text(shown, view)),
        };
        written.and_then(|()| out.flush()).map_err(Failure::Output)
    }
}
