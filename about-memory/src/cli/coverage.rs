//! `about-memory coverage`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use dmd::analyze;

use super::dump_limits::{self, DumpLimits};
use super::{Failure, symbols};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory coverage dmd.json.gz";

#[derive(Args)]
pub(crate) struct Coverage {
    /// A dump of dark-matter mode, compressed or not; `-` for standard input.
    file: PathBuf,
    #[command(flatten)]
    symbols: symbols::Symbols,
    #[command(flatten)]
    limits: DumpLimits,
}

impl Coverage {
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = self.limits.options();
        let mut dump = dump_limits::read(&self.file, &options)?;
        self.symbols.fix(&mut dump, &options);
        let coverage = analyze::Coverage::new(dump)
            .map_err(|error| Failure::File(self.file.display().to_string(), error.into()))?;
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write!(out, "{coverage}").and_then(|()| out.flush()).map_err(Failure::Output)
    }
}
