//! `about-memory show`.

use std::io::{self, Write as _};

use clap::Args;

use super::Failure;
use super::input::{Input, Reading, say_warnings};
use super::view::View;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory show memory-report.json.gz
  about-memory show memory-report.json.gz --verbose --filter explicit/cache
  about-memory show memory-report.json.gz --process 'Main Process' --depth 2 --units auto
  about-memory show memory-report.json.gz --threshold 0.1 --sort name
  zcat memory-report.json.gz | about-memory show -";

#[derive(Args)]
pub(crate) struct Show {
    /// The report file, compressed or not; `-` for standard input.
    file: Input,
    #[command(flatten)]
    view: View,
    #[command(flatten)]
    reading: Reading,
}

impl Show {
    pub(super) fn run(self) -> Result<(), Failure> {
        let filter = self.view.filter()?;
        let set = self.file.read(&self.reading)?;
        let text = self.view.apply(about_memory::text(&set), filter);
        say_warnings(&self.file.name(), text.warnings().count());
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::Output)
    }
}
