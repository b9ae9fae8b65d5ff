//! Saves a heap snapshot of a running process.

use std::path::PathBuf;
use std::time::Duration;

use about_memory::live;
use clap::Args;

use super::super::input::{self, Input};
use super::super::{Failure, live_input};

#[derive(Args)]
pub(super) struct Save {
    /// The process id or the name of a running process.
    #[arg(value_name = "PID")]
    process: Input,
    /// The file to write.
    #[arg(required_unless_present = "output")]
    file: Option<PathBuf>,
    /// The file to write, as in other commands.
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    output: Option<PathBuf>,
    /// The time the process has to answer.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = live_input::seconds)]
    timeout: Duration,
}

impl Save {
    pub(super) fn run(self) -> Result<String, Failure> {
        let pid = input::pid(&self.process)?;
        let file = self.file.or(self.output).expect("the parser requires one of them");
        let saved = live::save_snapshot(pid, &file, self.timeout);
        saved.map(|()| String::new()).map_err(|error| live_input::failure(&[pid], error))
    }
}
