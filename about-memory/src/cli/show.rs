//! `about-memory show`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use about_memory::Filter;
use clap::Args;
use memory_reporter::ReportSet;
use memory_reporter::file::{self, ReadOptions};

use super::{Failure, say};

#[derive(Args)]
pub(crate) struct Show {
    /// The report file, compressed or not; `-` for standard input.
    file: PathBuf,
    /// Show bytes, and everything however small.
    #[arg(long, short)]
    verbose: bool,
    /// Show only paths that contain this text.
    #[arg(long, short, value_name = "TEXT")]
    filter: Option<String>,
    /// The filter is a regular expression.
    #[arg(long, requires = "filter")]
    regex: bool,
    /// Read at most this many bytes of uncompressed text.
    #[arg(long, value_name = "BYTES", default_value_t = ReadOptions::default().max_bytes)]
    max_bytes: u64,
}

impl Show {
    pub(super) fn run(self) -> Result<(), Failure> {
        let filter = match &self.filter {
            Some(pattern) if self.regex => {
                Some(Filter::regex(pattern).map_err(|e| Failure::Usage(e.to_string()))?)
            }
            Some(text) => Some(Filter::substring(text)),
            None => None,
        };
        let set = self.read()?;
        let mut text = about_memory::text(&set).verbose(self.verbose);
        if let Some(filter) = filter {
            text = text.filter(filter);
        }
        let warnings = text.warnings().count();
        if warnings > 0 {
            let plural = if warnings == 1 { "" } else { "s" };
            say(&format!(
                "{}: {warnings} warning{plural}, shown at the top of the text",
                self.file.display()
            ));
        }
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::Output)
    }

    fn read(&self) -> Result<ReportSet, Failure> {
        let options = ReadOptions::new().max_bytes(self.max_bytes);
        let result = if self.file.as_os_str() == "-" {
            file::read_from(io::stdin().lock(), &options)
        } else {
            file::read_with(&self.file, &options)
        };
        result.map_err(|error| Failure::File(self.file.display().to_string(), error.into()))
    }
}
