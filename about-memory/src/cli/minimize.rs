//! `about-memory minimize`.

use std::io::{self, Write as _};
use std::time::Duration;

use about_memory::live;
use clap::Args;

use super::Failure;
use super::input::{self, InputArgument};
use super::live_input::{self, seconds};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory minimize 1234
  about-memory save 1234 memory-report.json.gz --minimize";

#[derive(Args)]
pub(crate) struct MinimizeCommand {
    /// The process id or the name of a running process.
    #[arg(value_name = "PID")]
    process: InputArgument,
    /// Wait at most this long for an answer. Seconds, or a number with ms, s, m or h.
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = seconds)]
    timeout: Duration,
}

impl MinimizeCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let pid = input::pid(&self.process)?;
        let minimized =
            live::minimize(pid, self.timeout).map_err(|error| live_input::failure(&[pid], error))?;
        let text = match (minimized.resident_before, minimized.resident) {
            (Some(before), Some(now)) => format!("resident: {} before, {} now", mib(before), mib(now)),
            _ => "done".to_owned(),
        };
        writeln!(io::stdout(), "{text}").map_err(Failure::Output)
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / f64::from(1 << 20))
}
