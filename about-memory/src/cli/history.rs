//! `about-memory history`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use dmd_analyze::program::UsageHistory;

use super::dump_limits::DumpLimits;
use super::program_view::{StackView, on_terminal};
use super::symbols::SymbolSearch;
use super::{Failure, recorded};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory history my-program.dmdrec
  about-memory history my-program.dmdrec --limit 20
  about-memory history my-program.dmdrec --json > history.json

A recording comes from: about-memory run --record FILE -- PROGRAM. The blocks of any time are shown by
`about-memory dmd FILE --at 12.5s` and `about-memory dmd FILE --between 10s 12.5s`, and what is never freed by
`about-memory leaks FILE`.";

/// Default number of rows of each table.
const ROWS: usize = 5;

#[derive(Args)]
pub(crate) struct HistoryCommand {
    /// The recording; `-` for standard input.
    file: PathBuf,
    /// Show at most this many rows of each table. [default: 5; all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Columns of the text.
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
        let mut options = self.view.options(on_terminal());
        options.width = self.width.into();
        let history = UsageHistory::new(&mut recording, &options, |dump| self.symbols.fix(dump, &limits))
            .map_err(|error| Failure::File(self.file.display().to_string(), error.into()))?;
        recorded::say_warnings(&self.file, &recording);
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let written = match self.json {
            true => write!(out, "{}", history.json(self.limit.unwrap_or(usize::MAX))),
            false => write!(out, "{}", history.text(self.limit.unwrap_or(ROWS), &options)),
        };
        written.and_then(|()| out.flush()).map_err(Failure::Output)
    }
}
