//! `about-memory save --dump`.

use std::path::PathBuf;
use std::time::Duration;

use about_memory::live;
use clap::Args;

use super::input::{self, InputArgument};
use super::live_input::{self, DEFAULT_DUMP_TIMEOUT, seconds};
use super::{Failure, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory save --dump 1234
  about-memory save --dump my-program dump.json.gz

DMD must record the process: start it with `about-memory run`. Show a dump with: about-memory dmd FILE";

#[derive(Args)]
pub(crate) struct DumpCommand {
    /// The process id or the name of a running process.
    #[arg(value_name = "PID")]
    process: InputArgument,
    /// The file to write. It is compressed. [default: dmd-PID.json.gz]
    file: Option<PathBuf>,
    /// The file to write.
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    output: Option<PathBuf>,
    /// Wait at most this long for an answer. Seconds, or a number with ms, s, m or h.
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = seconds)]
    timeout: Duration,
}

impl DumpCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        save(&self.process, self.file.or(self.output), Some(self.timeout))
    }
}

/// Saves a dump of a process.
pub(super) fn save(
    process: &InputArgument,
    file: Option<PathBuf>,
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let pid = input::pid(process)?;
    let file = file.unwrap_or_else(|| PathBuf::from(format!("dmd-{pid}.json.gz")));
    let timeout = timeout.unwrap_or(DEFAULT_DUMP_TIMEOUT);
    live::save_dump(pid, &file, timeout).map_err(|error| live_input::failure(&[pid], error))?;
    say(&format!("wrote {}; next: about-memory show {}", file.display(), file.display()));
    Ok(())
}
