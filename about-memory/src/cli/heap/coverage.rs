//! `about-memory heap coverage`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dmd_analyze::recording::Moment;

use super::super::dump_limits::DumpLimits;
use super::super::recorded::DumpOrRecording;
use super::super::{Failure, symbols};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory heap coverage dmd.json.gz
  about-memory heap coverage --by type dmd.json.gz

Reporters run when the program writes the dump, so coverage is of that time. To see the coverage near the peak:
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
    /// The time whose blocks to show. Only `end` has reports.
    #[arg(long, value_name = "TIME", default_value = "end", hide = true)]
    at: Moment,
    #[command(flatten)]
    symbols: symbols::SymbolSearch,
    #[command(flatten)]
    limits: DumpLimits,
}

impl CoverageCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.at != Moment::End {
            return Err(Failure::Usage(
                "--at: reporters run when the program writes the dump, so only `end` has reports; to see the coverage \
                 near the peak, write a dump there: about-memory run --when 'heap > SIZE' -- PROGRAM"
                    .to_owned(),
            ));
        }
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
        let coverage = dmd_analyze::Coverage::by(dump, key)
            .map_err(|error| Failure::File(self.file.display().to_string(), error.into()))?;
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write!(out, "{coverage}").and_then(|()| out.flush()).map_err(Failure::Output)
    }
}
