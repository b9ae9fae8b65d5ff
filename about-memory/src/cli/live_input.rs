//! Running processes as input: the options of requests, and errors.

use std::time::Duration;

use about_memory::live::{self, AskOptions, LiveError};
use clap::Args;
use memory_report::file::ReadOptions;
use memory_report::{ReportSet, WarningKind};

use super::{Failure, say};

/// The time that a process has to answer if no option sets it.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time that a process has to write a dump if no option sets it.
pub(crate) const DEFAULT_DUMP_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of requests to processes.
#[derive(Args, Clone, Debug)]
pub(crate) struct RequestOptions {
    /// Ask all listening processes of this user.
    #[arg(long, conflicts_with = "tree")]
    all: bool,
    /// Also ask the processes that these processes have started.
    #[arg(long)]
    tree: bool,
    /// Leave private data out of the names in reports.
    #[arg(long)]
    anonymize: bool,
    /// Free caches in the process before it reports.
    #[arg(long)]
    minimize: bool,
    /// Show resident memory. Reports have trees with a row for each mapping.
    #[arg(long)]
    resident: bool,
    /// Wait at most this long for an answer. Seconds, or a number with ms, s, m or h. [default: 10; 60 for a dump]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<Duration>,
}

impl RequestOptions {
    pub(crate) fn all(&self) -> bool {
        self.all
    }

    pub(crate) fn resident(&self) -> bool {
        self.resident
    }

    /// Returns the time to answer, if the user set one.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the first of the given options that apply only to processes.
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

    /// Whether an option sends requests also to processes that the user did not name.
    pub(crate) fn takes_more_processes(&self) -> bool {
        self.all || self.tree
    }

    /// Whether an option is given.
    pub(crate) fn is_chosen(&self) -> bool {
        self.resident || self.used().is_some()
    }

    /// Sets `--anonymize`: all requests ask for reports without private data in names.
    pub(crate) fn leave_out_private_data(&mut self) {
        self.anonymize = true;
    }

    /// Fails if an option that applies only to processes is given for a file.
    pub(crate) fn refuse_for_file(&self, file: &str) -> Result<(), Failure> {
        match self.used() {
            Some(option) => {
                Err(Failure::Usage(format!("{option} is for running processes, and {file} is a file")))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn ask(&self) -> AskOptions {
        AskOptions::new()
            .anonymize(self.anonymize)
            .minimize(self.minimize)
            .resident_map(self.resident)
            .timeout(self.timeout.unwrap_or(DEFAULT_TIMEOUT))
    }

    /// Returns the reports of these processes, with their descendants if `--tree` is given. With `--all`, returns the
    /// reports of all listening processes. Prints the missing processes on stderr.
    pub(crate) fn collect(&self, pids: &[u32], ask: &AskOptions) -> Result<ReportSet, Failure> {
        let set = self.collect_quietly(pids, ask)?;
        for warning in set.warnings().iter().filter(|warning| warning.kind == WarningKind::ProcessMissing) {
            say(&warning.to_string());
        }
        Ok(set)
    }

    /// Like [`collect`](Self::collect), but does not print the missing processes.
    pub(crate) fn collect_quietly(&self, pids: &[u32], ask: &AskOptions) -> Result<ReportSet, Failure> {
        let set = match self {
            _ if self.all => live::collect_all(ask),
            _ if self.tree => live::collect_tree(pids, ask),
            _ => live::collect(pids, ask),
        };
        set.map_err(|error| failure(pids, error))
    }
}

/// Converts the error of a request to a failure that names the processes `pids`. Without `pids`, the request was for
/// all processes.
pub(crate) fn failure(pids: &[u32], error: LiveError) -> Failure {
    let error = match error {
        LiveError::Folder(error) => {
            return Failure::File("cannot list processes".to_owned(), error.into());
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
    let reason = match (pids, &error) {
        ([pid], LiveError::NotListening) if !live::is_running(*pid) => {
            "does not listen: no process has this id; `about-memory list` shows the processes that answer"
                .to_owned()
        }
        ([pid], LiveError::TimedOut(_)) => format!(
            "{error}: it is busy or stopped; wait longer with --timeout 60, or continue a stopped process with kill -CONT {pid}"
        ),
        _ => error.to_string(),
    };
    Failure::File(who, anyhow::Error::msg(reason))
}

pub(crate) const HOW_TO_LISTEN: &str = "start a program with `about-memory run --listen` or with ABOUT_MEMORY=listen, or call memory_reporter::listen() \
     in it";

/// All processes together have this time to send their names.
const TIME_FOR_NAMES: Duration = Duration::from_secs(2);

/// Returns the id of the listening process with this name, as `about-memory list` shows it.
///
/// # Errors
///
/// Returns an error if several processes have the name, or if the process with the name uses another version of the
/// protocol.
pub(crate) fn process_named(name: &str) -> Result<Option<u32>, Failure> {
    if name.contains('/') {
        return Ok(None);
    }
    // Without a folder of sockets, no process has a name. The caller then treats the text as a file.
    let listeners = live::list(TIME_FOR_NAMES).unwrap_or_default();
    let has_name =
        |listener: &&live::ListeningProcess| listener.hello.as_ref().is_ok_and(|hello| hello.name == name);
    let is_of_name =
        |error: &LiveError| matches!(error, LiveError::Version { name: Some(own), .. } if own == name);
    if !listeners.iter().any(|listener| has_name(&listener))
        && let Some(error) = listeners
            .iter()
            .find_map(|listener| listener.hello.as_ref().err().filter(|error| is_of_name(error)))
    {
        return Err(Failure::File(name.to_owned(), anyhow::anyhow!("{error}")));
    }
    let pids: Vec<u32> = listeners.iter().filter(has_name).map(|listener| listener.pid).collect();
    if let [_, _, ..] = *pids {
        let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
        let pids = pids.join(", ");
        return Err(Failure::Usage(format!(
            "{name}: several processes have this name: {pids}; use a process id"
        )));
    }
    Ok(pids.first().copied())
}

/// Returns the reports of one process, with the default options of requests.
pub(crate) fn read(pid: u32, options: ReadOptions) -> Result<ReportSet, Failure> {
    live::collect(&[pid], &AskOptions::new().read(options)).map_err(|error| failure(&[pid], error))
}

/// Units of time and their seconds. `ms` is first, because it ends with `s`.
const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Parses a number of seconds (a fraction and an exponent are allowed), or a number with a unit: `500ms`, `30s`, `30m`,
/// `2h`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a number of seconds, or a number with ms, s, m or h, such as 30m".to_owned();
    let with_unit = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (number, unit) = with_unit.unwrap_or((text, 1.0));
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(number * unit).map_err(|_| wrong())?;
    if time < Duration::from_millis(1) || time > Duration::from_secs(86_400) {
        return Err("must be between a millisecond and a day".to_owned());
    }
    Ok(time)
}
