//! `about-memory history`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use dmd_analyze::program::{HeapGrowth, ProgramOptions, UsageHistory};
use dmd_analyze::recording::{Moment, Recording};
use dmd_analyze::{AnalyzeError, Dump};

use super::dump_limits::DumpLimits;
use super::program_view::{StackView, on_terminal};
use super::symbols::SymbolSearch;
use super::{Failure, recorded};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory history my-program.dmdrec
  about-memory history my-program.dmdrec --limit 20
  about-memory history my-program.dmdrec --json > history.json
  about-memory history my-server.dmdrec --growth 10s 34s

Make a recording with: about-memory run --record FILE -- PROGRAM. `about-memory dmd FILE --at 12.5s` and
`about-memory dmd FILE --between 10s 12.5s` show the blocks of any time. `about-memory leaks FILE` shows the blocks that
the program never freed.";

/// Default number of rows of each table.
const ROWS: usize = 5;

/// Default number of rows of each table of growth.
const GROWTH_ROWS: usize = 10;

#[derive(Args)]
pub(crate) struct HistoryCommand {
    /// The recording; `-` for standard input.
    file: PathBuf,
    /// Show which sites and types grew between two times: `peak`, `end`, or times after the start such as `12.5s` or
    /// `1m30s`. Growth is net: the live bytes at the second time minus the live bytes at the first time.
    #[arg(long, num_args = 2, value_names = ["TIME", "TIME"])]
    growth: Option<Vec<Moment>>,
    /// Show at most this many rows of each table. [default: 5; 10 with --growth; all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Width of the text, in characters.
    #[arg(long, value_name = "COLUMNS", default_value_t = 100, value_parser = clap::value_parser!(u16).range(60..))]
    width: u16,
    /// Write JSON instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    view: StackView,
    #[command(flatten)]
    symbols: SymbolSearch,
    #[command(flatten)]
    limits: DumpLimits,
}

impl HistoryCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let limits = self.limits.options();
        let mut recording = recorded::read(&self.file, &limits)?;
        let options = self.view.options(on_terminal()).width(self.width.into());
        let text = self
            .text(&mut recording, &options)
            .map_err(|error| Failure::File(self.file.display().to_string(), error.into()))?;
        recorded::say_warnings(&self.file, &recording);
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)
    }

    fn text(&self, recording: &mut Recording, options: &ProgramOptions) -> Result<String, AnalyzeError> {
        let limits = self.limits.options();
        let fix = |dump: &mut Dump| self.symbols.fix(dump, &limits);
        let rows = |usual: usize| self.limit.unwrap_or(if self.json { usize::MAX } else { usual });
        if let Some([from, to]) = self.growth.as_deref() {
            let growth = HeapGrowth::new(recording, [*from, *to], options, fix)?;
            let rows = rows(GROWTH_ROWS);
            return Ok(if self.json {
                growth.json(rows).to_string()
            } else {
                growth.text(rows, options).to_string()
            });
        }
        let history = UsageHistory::new(recording, options, fix)?;
        let rows = rows(ROWS);
        Ok(if self.json { history.json(rows).to_string() } else { history.text(rows, options).to_string() })
    }
}
