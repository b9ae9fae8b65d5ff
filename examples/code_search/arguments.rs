//! The command line.

use std::path::PathBuf;
use std::thread;

use clap::Parser;

use crate::sources::Limits;

const EXAMPLES: &str = "\
Examples:
  code_search                                  this workspace and the crates that cargo fetched
  code_search ~/src/linux --max-files 50000    another directory
  code_search . --query 'arc weak' --query drop_in_place
  code_search --report-cache                   account for the query cache, too
  code_search --save memory-report.json.gz     keep the reports; about-memory shows them
  DMD=1 code_search --serve                    keep running, for about-memory show code_search
  DMD=--stacks=full code_search --dmd FILE     let DMD show which stacks allocated unreported memory";

/// Searches source code, and shows which parts of the program use its memory.
#[derive(Debug, Parser)]
#[command(name = "code_search", after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder to search; by default this workspace, and the sources of crates that cargo fetched.
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// Search for documents that contain all these words; may be given several times.
    #[arg(long = "query", value_name = "WORDS")]
    queries: Vec<String>,

    /// Report the query cache. Without this option its memory is unreported.
    #[arg(long)]
    pub(crate) report_cache: bool,

    /// Report the documents twice: a mistake that DMD finds.
    #[arg(long)]
    pub(crate) report_twice: bool,

    /// Write the memory reports to this file, in Firefox's format; compressed if the name ends in `.gz`.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Write DMD's dump to this file, if the variable DMD is set or the program runs under `about-memory run`.
    #[arg(long, value_name = "FILE")]
    pub(crate) dmd: Option<PathBuf>,

    /// Keep running after the queries, and answer about-memory: list, show, watch, save, minimize, snapshot save, and
    /// dump under DMD.
    #[arg(long)]
    pub(crate) serve: bool,

    /// Stop reading after this many files.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    max_files: usize,

    /// Stop reading before the text exceeds this many megabytes.
    #[arg(long, value_name = "N", default_value_t = 200)]
    max_megabytes: u64,
}

impl Arguments {
    /// The limits of the reading.
    pub(crate) fn limits(&self) -> Limits {
        Limits { files: self.max_files, bytes: self.max_megabytes.saturating_mul(1_000_000) }
    }

    /// The queries of the command line, or the default queries if there are none.
    pub(crate) fn queries<'a>(&'a self, default: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let default = if self.queries.is_empty() { default } else { &[] };
        self.queries.iter().map(String::as_str).chain(default.iter().copied())
    }

    /// One worker thread for each core.
    pub(crate) fn workers(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }
}
