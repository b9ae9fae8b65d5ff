//! The command line: what is asked for, exit status, and errors in one line.

mod block;
mod check;
#[cfg(test)]
mod command_lines;
mod completions;
mod coverage;
mod diff;
mod dmd;
mod dump_limits;
mod html;
mod input;
mod list;
mod live_input;
mod minimize;
mod progress;
mod replay;
mod run;
mod save;
mod series;
mod show;
mod snapshot;
mod spelling;
mod symbols;
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

Exit status: 0 if all is well, 1 if a file cannot be read or no process answers, 2 for wrong
usage, 3 if a limit does not hold; of run, that of the program.";

/// Shows memory reports as Firefox's about:memory does.
#[derive(Parser)]
#[command(name = "about-memory", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a report file, or running processes, as text.
    #[command(after_help = show::EXAMPLES)]
    Show(show::Show),
    /// Show who allocated what is in a dump of DMD, as text.
    #[command(after_help = dmd::EXAMPLES, args_override_self = true)]
    Dmd(Box<dmd::Dmd>),
    /// Show how much of the heap reporters know, by a dump of DMD's dark-matter mode.
    #[command(after_help = coverage::EXAMPLES)]
    Coverage(coverage::Coverage),
    /// Show who points to a block in a dump of DMD's scan mode.
    #[command(after_help = block::EXAMPLES, args_override_self = true)]
    Block(block::Block),
    /// Name the running processes that can be asked.
    #[command(after_help = list::EXAMPLES)]
    List(list::List),
    /// Save the reports of running processes to a file.
    #[command(after_help = save::EXAMPLES)]
    Save(save::Save),
    /// Have a running process give back the memory that it can do without.
    #[command(after_help = minimize::EXAMPLES)]
    Minimize(minimize::Minimize),
    /// Show running processes again and again, changes marked.
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::Watch),
    /// Show what changed from one report file to another.
    #[command(after_help = diff::EXAMPLES)]
    Diff(Box<diff::Diff>),
    /// Check that a report keeps to a budget, or write one.
    #[command(after_help = check::EXAMPLES)]
    Check(check::Check),
    /// Show how amounts changed over many report files.
    #[command(after_help = series::EXAMPLES)]
    Series(series::Series),
    /// Write a page that shows a report, or what changed, in a browser.
    #[command(after_help = html::EXAMPLES)]
    Html(html::Html),
    /// Run a program under DMD, and have it dump at its end who allocated what.
    #[command(after_help = run::EXAMPLES)]
    Run(run::Run),
    /// Print a script that completes this program's arguments in a shell.
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Completions),
    /// Print the manual page.
    #[command(after_help = completions::MAN_EXAMPLES)]
    Man(completions::Man),
    /// Ask a heap snapshot (.fxsnapshot).
    Snapshot(snapshot::Snapshot),
}

/// Why a command failed.
enum Failure {
    /// A file could not be read, or a process not be asked: its name, and the reason.
    File(String, anyhow::Error),
    /// The arguments make no sense.
    Usage(String),
    /// Limits do not hold: each with its reason.
    Exceeded(Vec<String>),
    /// The text could not be written.
    Output(std::io::Error),
}

/// The arguments as the parser takes them.
fn spelled(arguments: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    // Commands by name, with the long names of their options.
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
            // Help goes to stdout and is no error; that nobody reads it is none either.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let result = match arguments.command {
        Command::Show(show) => show.run(),
        Command::Dmd(dmd) => dmd.run(),
        Command::Block(block) => block.run(),
        Command::Coverage(coverage) => coverage.run(),
        Command::List(list) => list.run(),
        Command::Save(save) => save.run(),
        Command::Minimize(minimize) => minimize.run(),
        Command::Watch(watch) => watch.run(),
        Command::Diff(diff) => diff.run(),
        Command::Check(check) => check.run(),
        Command::Series(series) => series.run(),
        Command::Html(html) => html.run(),
        Command::Run(run) => match run.run() {
            Ok(status) => return status,
            Err(failure) => Err(failure),
        },
        Command::Completions(completions) => completions.run(Arguments::command()),
        Command::Man(man) => man.run(Arguments::command()),
        Command::Snapshot(snapshot) => snapshot.run(),
    };
    let (line, status) = match result {
        Err(Failure::Exceeded(reasons)) => {
            reasons.iter().for_each(|reason| say(reason));
            return ExitCode::from(3);
        }
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Err(Failure::Output(error)) => (format!("cannot write: {error}"), 1),
        Err(Failure::File(file, error)) => (format!("{file}: {error}"), 1),
        Err(Failure::Usage(message)) => (message, 2),
    };
    say(&line);
    ExitCode::from(status)
}

/// Longest line on stderr, in bytes, the newline not counted.
const MAX_LINE: usize = 300;

/// One line on stderr, in which nothing foreign can break the line or steer the terminal. A long
/// one loses its middle: the file is named at the start, the reason at the end.
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
    // Nobody can be told that stderr is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}
