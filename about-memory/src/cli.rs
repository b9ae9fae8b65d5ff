//! The command line: arguments, exit status, and errors of one line.

mod block;
mod check;
#[cfg(test)]
mod command_lines;
mod completions;
mod coverage;
mod diff;
mod dmd;
mod dump;
mod dump_limits;
mod export;
mod file_kind;
mod heap_diff;
mod history;
mod html;
mod input;
mod keys;
mod leaks;
mod line;
mod list;
mod live_input;
mod log;
mod metrics;
mod minimize;
mod new_file;
mod program_view;
mod progress;
mod recorded;
mod replay;
mod run;
mod sample_bytes;
mod save;
mod series;
mod serve;
mod show;
mod snapshot;
mod spelling;
mod symbols;
mod top;
mod track;
mod typed;
mod view;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  about-memory show memory-report.json.gz
  about-memory show memory-report.json.gz --verbose --filter explicit/cache
  zcat memory-report.json.gz | about-memory show -
  about-memory diff before.json.gz after.json.gz --fail-if 'explicit > +5%'
  about-memory show 1234
  about-memory show --all
  about-memory html memory-report.json.gz -o page.html
  about-memory run -- ls -l

Exit status: 0 on success, 1 if a file cannot be read or no process answers, 2 for wrong usage,
3 if a limit does not hold. `run` exits with the status of the program.";

/// Shows memory reports as Firefox's about:memory does.
#[derive(Parser)]
#[command(name = "about-memory", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a report file or running processes as text.
    #[command(after_help = show::EXAMPLES)]
    Show(show::Show),
    /// Show who allocated the blocks in a DMD dump, or those of any time of a recording.
    #[command(after_help = dmd::EXAMPLES, args_override_self = true)]
    Dmd(Box<dmd::Dmd>),
    /// Show how the heap changed over the time, from a recording of DMD.
    #[command(after_help = history::EXAMPLES)]
    History(history::History),
    /// Show what is never freed, from a recording or a dump of DMD.
    #[command(after_help = leaks::EXAMPLES)]
    Leaks(leaks::Leaks),
    /// Show how much of the heap the reporters cover, from a dump of DMD's dark-matter mode.
    #[command(after_help = coverage::EXAMPLES)]
    Coverage(coverage::Coverage),
    /// Show which blocks point to a block, from a dump of DMD's scan mode.
    #[command(after_help = block::EXAMPLES, args_override_self = true)]
    Block(block::Block),
    /// Show which types the heap consists of, from a process or a dump of scan mode.
    #[command(after_help = typed::TYPES)]
    Types(Box<typed::Types>),
    /// Show the memory that vectors, tables, trees and enums have and do not use, by type.
    #[command(after_help = typed::WASTE)]
    Waste(Box<typed::Waste>),
    /// Show which fields hold the blocks of a type, or a block.
    #[command(after_help = typed::WHY)]
    Why(Box<typed::Why>),
    /// Show at which await async tasks are, and what they keep alive.
    #[command(after_help = typed::TASKS)]
    Tasks(Box<typed::Tasks>),
    /// List the running processes that answer requests.
    #[command(after_help = list::EXAMPLES)]
    List(list::List),
    /// Save the reports of running processes to a file.
    #[command(after_help = save::EXAMPLES)]
    Save(save::Save),
    /// Save a DMD dump of a running process.
    #[command(after_help = dump::EXAMPLES)]
    Dump(dump::Dump),
    /// Let DMD record a running process for a while.
    #[command(after_help = track::EXAMPLES)]
    Track(track::Track),
    /// Write a line of JSON for each allocation of a running process.
    #[command(after_help = log::EXAMPLES)]
    Log(log::Log),
    /// Free caches in a running process.
    #[command(after_help = minimize::EXAMPLES)]
    Minimize(minimize::Minimize),
    /// Show running processes repeatedly and mark the changes.
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::Watch),
    /// Show running processes, reports, heap snapshots and stacks in the terminal, with keys.
    #[command(after_help = top::EXAMPLES)]
    Top(Box<top::Top>),
    /// Show what changed between two report files, DMD dumps or recordings.
    #[command(after_help = diff::EXAMPLES)]
    Diff(Box<diff::Diff>),
    /// Check a report against a budget, or write a budget.
    #[command(after_help = check::EXAMPLES)]
    Check(check::Check),
    /// Show how amounts change over many report files.
    #[command(after_help = series::EXAMPLES)]
    Series(series::Series),
    /// Serve a live page in the browser for running processes, reports and heap snapshots.
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::Serve),
    /// Write a page for a browser that shows a report, a diff or a DMD dump.
    #[command(after_help = html::EXAMPLES)]
    Html(html::Html),
    /// Write a dump, a report or a heap snapshot in the format of another tool.
    #[command(after_help = export::EXAMPLES)]
    Export(Box<export::Export>),
    /// Show a report file or running processes as metrics, for collectors such as Prometheus.
    #[command(after_help = metrics::EXAMPLES)]
    Metrics(metrics::Metrics),
    /// Run a program under DMD, which writes a dump of its allocations when it ends.
    #[command(after_help = run::EXAMPLES)]
    Run(run::Run),
    /// Print a shell script that completes the arguments of this program.
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Completions),
    /// Print the manual page.
    #[command(after_help = completions::MAN_EXAMPLES)]
    Man(completions::Man),
    /// Analyze a heap snapshot (.fxsnapshot).
    Snapshot(snapshot::Snapshot),
}

impl Command {
    /// Whether the command handles the signals that end programs.
    fn ends_by_itself(&self) -> bool {
        matches!(
            self,
            Self::Log(_) | Self::Run(_) | Self::Serve(_) | Self::Top(_) | Self::Track(_) | Self::Watch(_)
        )
    }
}

/// Why a command failed.
enum Failure {
    /// A file could not be read or a process could not be asked: its name, and the reason.
    File(String, anyhow::Error),
    /// The arguments are wrong or contradict each other.
    Usage(String),
    /// Limits do not hold: one line for each.
    Exceeded(Vec<String>),
    /// Standard output could not be written.
    Output(std::io::Error),
}

impl Failure {
    /// The lines of its message.
    fn lines(self) -> Vec<String> {
        match self {
            Self::File(file, error) => match file_kind::note(&file, &error) {
                Some(note) => vec![format!("{file}: {error}; {note}")],
                None => vec![format!("{file}: {error}")],
            },
            Self::Usage(message) => vec![message],
            Self::Exceeded(reasons) => reasons,
            Self::Output(error) => vec![format!("cannot write: {error}")],
        }
    }
}

/// The arguments in the spelling that the parser accepts.
fn spelled(arguments: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    // Whether a command has an option of this long name.
    let ours = |command: &str, name: &str| {
        let of = Arguments::command().find_subcommand(command).cloned();
        of.is_some_and(|command| {
            command.get_arguments().any(|argument| {
                let other = argument.get_all_aliases().unwrap_or_default();
                argument.get_long() == Some(name) || other.contains(&name)
            })
        })
    };
    spelling::spelled(arguments, ours)
}

pub(crate) fn run() -> ExitCode {
    let arguments = match Arguments::try_parse_from(spelled(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to stdout and is no error. A reader that has gone away is no error either.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    if !arguments.command.ends_by_itself() {
        // Without handlers a signal ends the program all the same, and leaves its temporary files.
        let _ = about_memory::live::before_ending(|| {});
    }
    let result = match arguments.command {
        Command::Show(show) => show.run(),
        Command::Dmd(dmd) => dmd.run(),
        Command::Block(block) => block.run(),
        Command::Coverage(coverage) => coverage.run(),
        Command::History(history) => history.run(),
        Command::Leaks(leaks) => leaks.run(),
        Command::Types(types) => types.run(),
        Command::Waste(waste) => waste.run(),
        Command::Why(why) => why.run(),
        Command::Tasks(tasks) => tasks.run(),
        Command::List(list) => list.run(),
        Command::Save(save) => save.run(),
        Command::Dump(dump) => dump.run(),
        Command::Track(track) => track.run(),
        Command::Log(log) => log.run(),
        Command::Minimize(minimize) => minimize.run(),
        Command::Watch(watch) => watch.run(),
        Command::Top(top) => top.run(),
        Command::Diff(diff) => diff.run(),
        Command::Check(check) => check.run(),
        Command::Series(series) => series.run(),
        Command::Serve(serve) => serve.run(),
        Command::Html(html) => html.run(),
        Command::Export(export) => export.run(),
        Command::Metrics(metrics) => metrics.run(),
        Command::Run(run) => match run.run() {
            Ok(status) => return status,
            Err(failure) => Err(failure),
        },
        Command::Completions(completions) => completions.run(Arguments::command()),
        Command::Man(man) => man.run(Arguments::command()),
        Command::Snapshot(snapshot) => snapshot.run(),
    };
    let Err(failure) = result else { return ExitCode::SUCCESS };
    about_memory::live::wait_if_ending();
    let status = match &failure {
        Failure::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Failure::File(..) | Failure::Output(_) => 1,
        Failure::Usage(_) => 2,
        Failure::Exceeded(_) => 3,
    };
    failure.lines().iter().for_each(|line| say(line));
    ExitCode::from(status)
}

/// Longest line on stderr, in bytes without the newline.
const MAX_LINE: usize = 300;

/// Prints one line on stderr. Escapes keep foreign text from breaking the line or controlling the terminal. A long
/// line loses its middle: the start names the file, and the end gives the reason.
fn say(message: &str) {
    let line = format!("about-memory: {}", about_memory::escape(message));
    let line = if line.len() <= MAX_LINE {
        line
    } else {
        let head = (0..=MAX_LINE / 2).rfind(|at| line.is_char_boundary(*at)).unwrap_or(0);
        let room = MAX_LINE - head - " ... ".len();
        let mut tail = line.len() - room;
        while !line.is_char_boundary(tail) {
            tail += 1;
        }
        format!("{} ... {}", &line[..head], &line[tail..])
    };
    // If stderr is closed, there is no place to report it.
    let _ = writeln!(std::io::stderr(), "{line}");
}
