//! `about-memory heap coverage`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dmd_analyze::program::HeapOverview;
use dmd_analyze::recording::Moment;
use dmd_analyze::{AnalyzeError, DumpTime, Mode};

use super::super::dump_limits::DumpLimits;
use super::super::recorded::DumpOrRecording;
use super::super::{Failure, symbols};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory heap coverage dmd.json.gz
  about-memory heap coverage --by type dmd.json.gz

Reporters run when the program writes the dump, not at the peak. With --at peak, a block counts as reported if the
reporters reported a block of the same stack. For exact reports, write a dump near the peak:
about-memory run --when 'heap > 1 GiB' -- my-program";

/// The key that groups the rows of the table.
#[derive(Clone, Copy, Default, ValueEnum)]
enum CoverageGrouping {
    /// The crate that allocated the blocks.
    #[default]
    Crate,
    /// The type of the blocks, from their allocation stacks.
    Type,
}

#[derive(Args)]
pub(crate) struct CoverageCommand {
    /// A dump of dark-matter mode, compressed or not; `-` for standard input.
    file: PathBuf,
    /// Group the blocks by this.
    #[arg(long, value_enum, default_value_t, value_name = "KEY")]
    by: CoverageGrouping,
    /// Show the blocks at this time: `peak`, `end` or a time after the start such as `12.5s` or `1m30s`. A dump has only
    /// `peak` and `end`. [default: peak if the heap has shrunk by a tenth since the peak and reporters reported a block;
    /// otherwise end]
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,
    #[command(flatten)]
    symbols: symbols::SymbolSearch,
    #[command(flatten)]
    limits: DumpLimits,
}

impl CoverageCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let failure = |error: anyhow::Error| Failure::File(self.file.display().to_string(), error);
        let options = self.limits.options();
        let mut dump = DumpOrRecording::read(&self.file, &options)?.into_dump(
            &self.file,
            "the reports of memory reporters",
            "dark-matter",
        )?;
        self.symbols.fix(&mut dump, &options);
        let key = match self.by {
            CoverageGrouping::Crate => dmd_analyze::CoverageKey::Crate,
            CoverageGrouping::Type => dmd_analyze::CoverageKey::Type,
        };
        let at = match self.at {
            Some(Moment::Peak) => DumpTime::Peak,
            Some(Moment::End) => DumpTime::End,
            None if dump.has_reports() => HeapOverview::new(&dump, None).at,
            None => DumpTime::End,
            Some(_) => return Err(failure(AnalyzeError::OneTime.into())),
        };
        if at == DumpTime::Peak && dump.mode() == Mode::DarkMatter && !dump.has_reports() {
            return Err(failure(anyhow::anyhow!(
                "reporters reported no block when the program wrote the dump, so the coverage at the peak is unknown; write a \
                 dump near the peak: about-memory run --when 'heap > SIZE' -- PROGRAM"
            )));
        }
        let dump = dump.at(at).map_err(|error| failure(error.into()))?;
        let coverage = dmd_analyze::Coverage::by(dump, key).map_err(|error| failure(error.into()))?;
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write!(out, "{coverage}").and_then(|()| out.flush()).map_err(Failure::Output)
    }
}
