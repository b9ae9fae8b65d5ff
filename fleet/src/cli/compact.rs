//! `compact`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;

use super::Outcome;
use crate::compact::{CompactOptions, compact};
use crate::error::FleetError;
use crate::import::since_1970;
use crate::session::SessionOptions;

pub(super) const EXAMPLES: &str = "Examples:\n  memory-fleet compact fleet\n  0 * * * * memory-fleet compact /srv/fleet    (each hour, by cron)\n\nA day \
     that has ended becomes one file for each service, and ended hours of today become another. The inputs are deleted \
     afterwards. A kill at any moment loses nothing; run the command again.";

/// Merge the small files of each day and service, and sum them up for the questions
#[derive(Args)]
pub(super) struct CompactCommand {
    /// The folder of the tables
    folder: PathBuf,
    /// Compact as at this time, in seconds since 1970 [default: now]
    #[arg(long, value_name = "SECONDS")]
    time: Option<u64>,
    /// The maximum number of megabytes (MiB) for sorting and grouping; more goes to temporary files
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(16..))]
    memory: u32,
    /// The number of threads [default: one for each processor]
    #[arg(long, value_name = "THREADS", default_value_t = 0, hide_default_value = true)]
    threads: usize,
}

impl CompactCommand {
    pub(super) async fn run(self) -> Result<Outcome, FleetError> {
        let now = self.time.map_or_else(|| since_1970(SystemTime::now()), Duration::from_secs);
        let session = SessionOptions {
            memory: (self.memory as usize) << 20,
            threads: self.threads,
            ..SessionOptions::default()
        };
        let done = compact(&self.folder, &CompactOptions { now, session }).await?;
        writeln!(
            io::stdout(),
            "{} files merged into {}, {} left by killed processes deleted",
            done.merged,
            done.written,
            done.cleaned
        )
        .map_err(FleetError::Output)?;
        for warning in &done.warnings {
            writeln!(io::stderr(), "memory-fleet: {warning}").map_err(FleetError::Output)?;
        }
        Ok(Outcome::Done)
    }
}
