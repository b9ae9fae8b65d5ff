//! `about-memory save`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use about_memory::{escape, live};
use clap::Args;
use memory_report::{WarningKind, file};

use super::input::{self, InputArgument};
use super::live_input::{self, RequestOptions};
use super::{Failure, dump, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory save 1234 memory-report.json.gz
  about-memory save 1234 --tree -o memory-report.json.gz --anonymize
  about-memory save --all reports
  about-memory save --dump 1234 dump.json.gz

--all writes a new folder in DIR: about-memory-1, then about-memory-2, and so on.";

#[derive(Args)]
#[command(
    override_usage = "about-memory save [OPTIONS] PID... FILE\n       about-memory save [OPTIONS] PID... -o FILE\n       \
                      about-memory save [OPTIONS] --all DIR\n       \
                      about-memory save --dump PID [FILE]"
)]
pub(crate) struct SaveCommand {
    /// The process ids or names of running processes, then the file to write. It is compressed if its name ends in .gz.
    #[arg(value_name = "PID... FILE", required_unless_present = "output")]
    arguments: Vec<InputArgument>,
    /// The file to write. With --all it is a folder. `-` is standard output. With this option, all other arguments are
    /// processes.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Save a compressed DMD dump of one process that DMD records. [default file: dmd-PID.json.gz]
    #[arg(long)]
    dump: bool,
    #[command(flatten)]
    live: RequestOptions,
}

impl SaveCommand {
    pub(super) fn run(mut self) -> Result<(), Failure> {
        if self.dump {
            return self.save_dump();
        }
        let to = match self.output.take() {
            Some(to) => to,
            None => self.arguments.pop().expect("there is at least one argument").path().to_owned(),
        };
        let to_stdout = to.as_os_str() == "-";
        if self.live.all() {
            if to_stdout {
                return Err(Failure::Usage("--all needs a folder; `-` is not allowed".to_owned()));
            }
            return self.gather(&to);
        }
        if self.arguments.is_empty() {
            return Err(Failure::Usage(
                "a process id and a file are required, or --all and a folder".to_owned(),
            ));
        }
        let pids = input::pids(&self.arguments)?;
        let set = self.live.collect(&pids, &self.live.ask())?;
        if to_stdout {
            let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
            return file::write_to(&mut out, &set).and_then(|()| out.flush()).map_err(Failure::Output);
        }
        file::write(&to, &set).map_err(|error| {
            Failure::File(to.display().to_string(), anyhow::anyhow!("cannot be written: {error}"))
        })
    }

    fn save_dump(self) -> Result<(), Failure> {
        if let Some(option) = self.live.used().filter(|option| *option != "--timeout") {
            return Err(Failure::Usage(format!("{option} is for reports, not for --dump")));
        }
        let (process, file) = match (&*self.arguments, self.output) {
            ([process], output) => (process, output),
            ([process, file], None) => (process, Some(file.path().to_owned())),
            _ => return Err(Failure::Usage("--dump takes one process, and at most one file".to_owned())),
        };
        dump::save(process, file, self.live.timeout())
    }

    fn gather(&self, within: &Path) -> Result<(), Failure> {
        if let Some(argument) = self.arguments.first() {
            let argument = argument.name();
            return Err(Failure::Usage(format!("{argument}: --all does not take process ids")));
        }
        let gathered =
            live::gather(within, &self.live.ask()).map_err(|error| live_input::failure(&[], error))?;
        for warning in gathered.reports.warnings() {
            if matches!(warning.kind, WarningKind::ProcessMissing | WarningKind::Unavailable) {
                say(&warning.to_string());
            }
        }
        let folder = escape(&gathered.folder.display().to_string());
        writeln!(io::stdout(), "{folder}").map_err(Failure::Output)
    }
}
