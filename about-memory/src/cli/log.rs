//! `about-memory log`.

mod entry;

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use about_memory::live::{self, EndSignals};
use clap::Args;
use dmd_analyze::DumpReadOptions;

use super::input::{self, InputArgument};
use super::live_input::{self, seconds};
use super::symbols::SymbolSearch;
use super::{Failure, say};
use entry::StackWriter;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory log 1234 --seconds 10
  about-memory log my-server --probability 0.01 > allocations.jsonl
  about-memory log my-server --seconds 5 | jq -r .class

Writes a line of JSON for each allocation. The line has the stack `frame` (the innermost call first), the `timestamp` in
milliseconds since the process started, the Rust type `class` if the stack shows it, the usable bytes `size` and the
`requested` bytes. DMD must record the process or wait in it (see `about-memory track --help`). The process keeps at most
--length allocations until they are sent. If the process drops allocations, the log has the line {\"overflowed\":true}:
then use a smaller --probability. The log ends when this command ends. DMD then waits again, if it waited before the log.";

/// After a signal, `about-memory` has this time to end by itself. While the log runs, it also has the time for the
/// process's last answer.
const GRACE: Duration = Duration::from_secs(5);

/// The share is sent as parts per million. This number means all allocations.
const MILLION: f64 = 1e6;

#[derive(Args)]
pub(crate) struct LogCommand {
    /// The process id or the name of a running process.
    #[arg(value_name = "PID")]
    process: InputArgument,
    /// The share of the allocations to log, from 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = probability)]
    probability: f64,
    /// Let the process keep at most this many allocations that it has not sent yet.
    #[arg(long, value_name = "ENTRIES", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    length: u64,
    /// End after this time. Seconds, or a number with ms, s, m or h. [default: at Ctrl-C or the end of the process]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Wait at most this long for an answer. Seconds, or a number with ms, s, m or h.
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = seconds)]
    timeout: Duration,
    #[command(flatten)]
    symbols: SymbolSearch,
}

fn probability(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

impl LogCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let pid = input::pid(&self.process)?;
        let failure = |error| live_input::failure(&[pid], error);
        let ending = EndSignals::new(GRACE, || {})
            .map_err(|error| Failure::File("cannot wait for signals".to_owned(), error.into()))?;
        let per_million = (self.probability * MILLION).round() as u64;
        let mut log = live::log(pid, per_million, self.length, self.timeout).map_err(failure)?;
        ending.allow(GRACE + self.timeout);
        let until = self.seconds.map(|seconds| Instant::now() + seconds);
        let mut resolver = StackWriter::new(self.symbols.options(&DumpReadOptions::default()));
        let mut has_overflowed = false;
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        while let Some(lines) = log.lines(until, ending.flag()).map_err(failure)? {
            for line in resolver.resolved(&lines).map_err(|()| failure(live::LiveError::Garbage))? {
                has_overflowed |= line.is_overflow;
                out.write_all(line.text.as_bytes()).map_err(Failure::Output)?;
            }
            out.flush().map_err(Failure::Output)?;
        }
        if has_overflowed {
            say(&format!(
                "process {pid}: the log was full, so allocations are missing; use a smaller --probability"
            ));
        }
        Ok(())
    }
}
