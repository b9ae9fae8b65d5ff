//! `collect`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Outcome;
use crate::collect::{CollectOptions, CollectTarget, CollectedRound, collect};
use crate::error::FleetError;

pub(super) const EXAMPLES: &str = "Examples:\n  memory-fleet collect fleet http://127.0.0.1:9090/memory/report\n  memory-fleet collect fleet --targets \
     targets.txt\n  memory-fleet collect fleet dns://search.example:9090 http://10.0.0.7:6060/debug/pprof/heap local:\n\nA line \
     of a file of targets: ADDRESS [service=NAME] [version=VERSION] [host=NAME]. The address is http://HOST:PORT[/PATH]; \
     dns://NAME:PORT[/PATH] for each address of a name; or local: for the processes of this user on this machine. The path \
     is /memory/report by default; a path below /debug/pprof/ gives stacks. File and names are read again each interval. \
     Reports reach the tables at the end of each interval, so a kill loses at most one.";

/// Ask processes for their reports each minute, and add the reports to the tables
#[derive(Args)]
pub(super) struct CollectCommand {
    /// The folder of the tables
    folder: PathBuf,
    /// The addresses of processes: http://HOST:PORT/PATH, dns://NAME:PORT/PATH, local:
    #[arg(value_parser = CollectTarget::parse)]
    urls: Vec<CollectTarget>,
    /// A file with a target on each line
    #[arg(long, value_name = "FILE")]
    targets: Option<PathBuf>,
    /// The seconds between two requests to a process
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    every: Duration,
    /// The maximum seconds for a request
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// The maximum number of open requests
    #[arg(long, value_name = "REQUESTS", default_value_t = 64)]
    concurrency: usize,
    /// The maximum size of an answer in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_answer: u32,
    /// The size of waiting reports in MiB above which they are written before the interval ends
    #[arg(long, value_name = "MIB", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..))]
    max_waiting: u32,
    /// Stop after this number of intervals
    #[arg(long, value_name = "INTERVALS")]
    rounds: Option<u64>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "must be seconds from 0.05 to 86400".to_owned())
}

impl CollectCommand {
    pub(super) async fn run(self) -> Result<Outcome, FleetError> {
        let options = CollectOptions {
            targets: self.urls,
            file: self.targets,
            interval: self.every,
            timeout: self.timeout,
            concurrency: self.concurrency,
            max_answer: (self.max_answer as usize) << 20,
            max_waiting: (self.max_waiting as usize) << 20,
            rounds: self.rounds,
        };
        collect(&self.folder, &options, stopped(), report).await?;
        Ok(Outcome::Done)
    }
}

/// Completes at a signal that ends the program.
async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut term), Ok(mut hang_up)) =
            (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
        {
            tokio::select! {
                _ = term.recv() => {}
                _ = hang_up.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

fn report(round: &CollectedRound) {
    let mut err = io::stderr().lock();
    let waiting =
        if round.waiting > 0 { format!(", {} wait after failures", round.waiting) } else { String::new() };
    let _ = writeln!(
        err,
        "memory-fleet: {} of {} processes answered{waiting}; {} files",
        round.answered,
        round.targets,
        round.files.len()
    );
    for failure in &round.failures {
        let _ = writeln!(err, "memory-fleet: {failure}");
    }
}
