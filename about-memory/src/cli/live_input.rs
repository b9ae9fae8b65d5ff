//! Processes as input: numbers where files are named as well.

use std::time::Duration;

use about_memory::live::{self, AskOptions, LiveError};
use clap::Args;
use memory_report::file::ReadOptions;
use memory_report::{ReportSet, WarningKind};

use super::input::Input;
use super::{Failure, say};

/// How long a process may take unless it is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// How processes are asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct LiveOptions {
    /// Ask all processes that listen.
    #[arg(long, conflicts_with = "tree")]
    all: bool,
    /// Ask the processes that these have started, too.
    #[arg(long)]
    tree: bool,
    /// Private data is left out of names.
    #[arg(long)]
    anonymize: bool,
    /// Memory usage is minimized first.
    #[arg(long)]
    minimize: bool,
    /// Add the view that adds up to resident memory: what each mapping holds beside `explicit`.
    #[arg(long)]
    resident: bool,
    /// How long each process may take to answer. [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
}

impl LiveOptions {
    pub(crate) fn all(&self) -> bool {
        self.all
    }

    pub(crate) fn resident(&self) -> bool {
        self.resident
    }

    /// The first option that has a meaning for processes only.
    pub(crate) fn used(&self) -> Option<&'static str> {
        let used = [
            (self.all, "--all"),
            (self.tree, "--tree"),
            (self.anonymize, "--anonymize"),
            (self.minimize, "--minimize"),
            (self.timeout.is_some(), "--timeout"),
        ];
        used.into_iter().find_map(|(used, name)| used.then_some(name))
    }

    pub(crate) fn ask(&self) -> AskOptions {
        AskOptions::new()
            .anonymize(self.anonymize)
            .minimize(self.minimize)
            .resident_map(self.resident)
            .timeout(self.timeout.unwrap_or(DEFAULT_TIMEOUT))
    }

    /// The reports of these processes, or of all; those that are missing are told on stderr.
    pub(crate) fn collect(&self, pids: &[u32], ask: &AskOptions) -> Result<ReportSet, Failure> {
        let set = self.collect_quietly(pids, ask)?;
        for warning in set.warnings().iter().filter(|warning| warning.kind == WarningKind::ProcessMissing) {
            say(&warning.to_string());
        }
        Ok(set)
    }

    /// As [`collect`](Self::collect), without a word about those that are missing.
    pub(crate) fn collect_quietly(&self, pids: &[u32], ask: &AskOptions) -> Result<ReportSet, Failure> {
        let set = match self {
            _ if self.all => live::collect_all(ask),
            _ if self.tree => live::collect_tree(pids, ask),
            _ => live::collect(pids, ask),
        };
        set.map_err(|error| failure(pids, error))
    }
}

/// The line for processes of which none answered.
pub(crate) fn failure(pids: &[u32], error: LiveError) -> Failure {
    let error = match error {
        LiveError::Folder(error) => {
            return Failure::File("cannot look for processes".to_owned(), error.into());
        }
        LiveError::Write(path, error) => {
            let reason = anyhow::anyhow!("cannot be written: {error}");
            return Failure::File(path.display().to_string(), reason);
        }
        error => error,
    };
    let who = match pids {
        [] if matches!(error, LiveError::NotListening) => {
            return Failure::File("no process listens".to_owned(), anyhow::anyhow!(HOW_TO_LISTEN));
        }
        [] => "all processes".to_owned(),
        [pid] => format!("process {pid}"),
        pids => {
            let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
            format!("processes {}", pids.join(", "))
        }
    };
    Failure::File(who, error.into())
}

pub(crate) const HOW_TO_LISTEN: &str =
    "start one with ABOUT_MEMORY=listen, or have it call memory_reporter::listen()";

/// The processes' numbers, if all inputs are.
pub(crate) fn pids(inputs: &[Input]) -> Result<Vec<u32>, Failure> {
    let not_one = |input: &Input| Failure::Usage(format!("{}: not a process's number", input.name()));
    inputs.iter().map(|input| input.pid().ok_or_else(|| not_one(input))).collect()
}

/// The reports of one process, all options at their defaults.
pub(crate) fn read(pid: u32, options: ReadOptions) -> Result<ReportSet, Failure> {
    live::collect(&[pid], &AskOptions::new().read(options)).map_err(|error| failure(&[pid], error))
}

/// A time on the command line; a fraction will do.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| "not a number of seconds".to_owned())?;
    if time < Duration::from_millis(1) || time > Duration::from_secs(86_400) {
        return Err("not between a millisecond and a day".to_owned());
    }
    Ok(time)
}
