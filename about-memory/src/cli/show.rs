//! `about-memory show`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use about_memory::Filter;
use clap::Args;
use memory_reporter::ReportSet;
use memory_reporter::file::{self, ReadOptions};

use super::live_input::{self, LiveOptions};
use super::{Failure, say};

#[derive(Args)]
pub(crate) struct Show {
    /// The report file, compressed or not, `-` for standard input; or the numbers of running
    /// processes.
    #[arg(value_name = "FILE|PID", required_unless_present = "all", conflicts_with = "all")]
    inputs: Vec<PathBuf>,
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
    #[command(flatten)]
    live: LiveOptions,
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
        let (name, set) = self.read()?;
        let mut text = about_memory::text(&set).verbose(self.verbose);
        if let Some(filter) = filter {
            text = text.filter(filter);
        }
        let warnings = text.warnings().count();
        if warnings > 0 {
            let plural = if warnings == 1 { "" } else { "s" };
            say(&format!("{name}: {warnings} warning{plural}, shown at the top of the text"));
        }
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::Output)
    }

    /// What to show, and what to call it in messages.
    fn read(&self) -> Result<(String, ReportSet), Failure> {
        let options = ReadOptions::new().max_bytes(self.max_bytes);
        if let [file] = &*self.inputs
            && live_input::pid(file).is_none()
        {
            if let Some(option) = self.live.used() {
                let file = file.display();
                return Err(Failure::Usage(format!("{option} is for processes, and {file} is a file")));
            }
            return Ok((file.display().to_string(), read_file(file, &options)?));
        }
        let pids = live_input::pids(&self.inputs)?;
        let set = self.live.collect(&pids, &self.live.ask().read(options))?;
        let name = if let [pid] = *pids { format!("process {pid}") } else { "processes".to_owned() };
        Ok((name, set))
    }
}

fn read_file(file: &Path, options: &ReadOptions) -> Result<ReportSet, Failure> {
    let result = if file.as_os_str() == "-" {
        file::read_from(io::stdin().lock(), options)
    } else {
        file::read_with(file, options)
    };
    result.map_err(|error| Failure::File(file.display().to_string(), error.into()))
}
