//! `about-memory dump`.

use std::path::PathBuf;
use std::time::Duration;

use about_memory::live;
use clap::Args;

use super::input::{self, Input};
use super::live_input::{self, seconds};
use super::{Failure, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory dump 1234
  about-memory dump my-program dump.json.gz

DMD must record the process: start it with `about-memory run`. Show a dump with: about-memory dmd FILE";

#[derive(Args)]
pub(crate) struct Dump {
    /// The process id or the name of a running process.
    #[arg(value_name = "PID")]
    process: Input,
    /// The file to write, which is compressed. [default: dmd-PID.json.gz]
    file: Option<PathBuf>,
    /// The file to write, as in other commands.
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    output: Option<PathBuf>,
    /// The time the process has to answer: seconds, or a number with ms, s, m or h.
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = seconds)]
    timeout: Duration,
}

impl Dump {
    pub(super) fn run(self) -> Result<(), Failure> {
        let pid = input::pid(&self.process)?;
        let file = self.file.or(self.output).unwrap_or_else(|| PathBuf::from(format!("dmd-{pid}.json.gz")));
        live::save_dump(pid, &file, self.timeout).map_err(|error| live_input::failure(&[pid], error))?;
        say(&format!("wrote {}", file.display()));
        Ok(())
    }
}
