//! `about-memory track`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use about_memory::live::{self, EndSignals, LiveError, SessionEnd};
use clap::Args;
use indicatif::ProgressBar;

use super::input::{self, InputArgument};
use super::live_input::{self, seconds};
use super::sample_bytes::{self, DEFAULT};
use super::{Failure, first_screen, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory track 1234 --seconds 60
  about-memory track my-server --sample 64KiB -o growth.json.gz
  about-memory track my-server --exact --seconds 10
  about-memory track my-server --record leak.dmdrec --seconds 60

DMD must wait in the process: start it with `about-memory run --wait-for-track`, or declare its allocator with
dmd::Dmd::on_request. The dump has the blocks that the process allocated while it was tracked and that were live at the
end: the growth. The dump does not contain older blocks. The summary shows the sites and types of the growth. Afterwards
DMD waits again. Look at the dump with: about-memory show FILE

With --record the process writes every allocation and every free into the file. Look at the recording with:
about-memory leaks FILE, about-memory history FILE";

/// After a signal, `about-memory` has this time to end by itself. While it tracks a process, it also has the time for
/// the process's last answer.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct TrackCommand {
    /// The process id or the name of a running process.
    #[arg(value_name = "PID")]
    process: InputArgument,
    /// Record a sample: one block per this many allocated bytes, on average. Bytes, or a number with KiB, MiB or GiB.
    #[arg(long, alias = "bytes", group = "recorded", value_name = "SIZE", default_value = DEFAULT, value_parser = sample_bytes::parse)]
    sample: u64,
    /// Record every block.
    #[arg(long, group = "recorded")]
    exact: bool,
    /// Record every allocation and every free into this file. With this option, no dump is written.
    #[arg(long, group = "recorded", value_name = "FILE", conflicts_with = "output")]
    record: Option<PathBuf>,
    /// End after this time. Seconds, or a number with ms, s, m or h. [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    seconds: Option<Duration>,
    /// The file to write. It is compressed. [default: dmd-PID.json.gz]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print no summary at the end.
    #[arg(long, short)]
    quiet: bool,
    /// Wait at most this long for an answer. Seconds, or a number with ms, s, m or h.
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = seconds)]
    timeout: Duration,
}

impl TrackCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let pid = input::pid(&self.process)?;
        let file = self.output.unwrap_or_else(|| PathBuf::from(format!("dmd-{pid}.json.gz")));
        let failure = |error| live_input::failure(&[pid], error);
        let ending = EndSignals::new(GRACE, || {})
            .map_err(|error| Failure::File("cannot wait for signals".to_owned(), error.into()))?;
        let sample_bytes = if self.exact { 0 } else { self.sample };
        let begun = match &self.record {
            Some(path) => live::record(pid, path, self.timeout),
            None => live::track(pid, sample_bytes, self.timeout),
        };
        let mut tracking = begun.map_err(failure)?;
        // From here on, there is data to write at the end.
        ending.allow(GRACE + self.timeout);
        let until = self.seconds.map(|seconds| Instant::now() + seconds);
        let end = match (until, &self.record) {
            (Some(_), _) => "",
            (None, None) => "; Ctrl-C ends it and writes the dump",
            (None, Some(_)) => "; Ctrl-C ends the recording",
        };
        let shown = std::io::stderr().is_terminal().then(|| spinner(format!("tracking {pid}{end}")));
        let waited = tracking.wait(until, ending.flag());
        if let Some(shown) = shown {
            shown.finish_and_clear();
        }
        if let Some(path) = &self.record {
            match waited.and_then(|()| tracking.finish()) {
                Ok(()) => {}
                Err(error @ (LiveError::Ended | LiveError::Replaced)) => {
                    say(&format!("process {pid} {error}"));
                }
                Err(error) => return Err(failure(error)),
            }
            say(&format!("recorded {0}; next: about-memory leaks {0}", path.display()));
            return if self.quiet { Ok(()) } else { first_screen::growth_of_recording(path) };
        }
        let saved = waited.and_then(|()| tracking.save(&file));
        let end = saved.map_err(|error| match error {
            // The process has ended or runs another program, so its recorded blocks are lost.
            LiveError::Ended | LiveError::Replaced => Failure::File(
                format!("process {pid}"),
                anyhow::anyhow!(
                    "{error} and sent no dump: SIGKILL, a crash, _exit or execl (without libdmd.so: any signal or exec) \
                     left no time for it; use --record FILE to keep the allocations before such an end"
                ),
            ),
            error => failure(error),
        })?;
        match end {
            SessionEnd::ProcessEnded => say(&format!("process {pid} {}", LiveError::Ended)),
            SessionEnd::ProcessReplaced => say(&format!("process {pid} {}", LiveError::Replaced)),
            _ => {}
        }
        say(&format!("wrote {}", file.display()));
        if self.quiet { Ok(()) } else { first_screen::growth_of_dump(&file) }
    }
}

fn spinner(message: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
