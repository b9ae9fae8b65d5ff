//! The command line: arguments, exit status, and one-line errors.

mod attach;
mod check;
#[cfg(test)]
mod command_lines;
mod completions;
mod diff;
mod dmd;
mod dump;
mod dump_limits;
mod export;
mod file_kind;
mod first_screen;
mod heap;
mod heap_diff;
mod help;
mod history;
mod html;
mod input;
mod keys;
mod leaks;
mod line;
mod linked_allocators;
mod list;
mod live_input;
mod log;
mod mcp;
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
mod view;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use file_kind::FileKind;

/// Finds the code, the types and the reports that hold the memory of a Rust program.
#[derive(Parser)]
#[command(name = "about-memory", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program and record its allocations; at its end, show what held the most memory.
    #[command(after_help = run::EXAMPLES)]
    Run(run::RunCommand),
    /// Record the allocations of a process that runs already, whatever started it.
    #[command(after_help = attach::EXAMPLES)]
    Attach(attach::AttachCommand),
    /// Record the allocations of a running process for a while.
    #[command(after_help = track::EXAMPLES)]
    Track(track::TrackCommand),
    /// Show the first screen of any file or process, and the next commands to type.
    #[command(after_help = show::EXAMPLES)]
    Show(Box<show::ShowCommand>),
    /// Browse processes, reports, heap snapshots and stacks in the terminal.
    #[command(after_help = top::EXAMPLES)]
    Top(Box<top::TopCommand>),
    /// Show processes, reports, heap snapshots and stacks in the browser.
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::ServeCommand),
    /// Show which code allocated the memory, from a dump or a recording of DMD.
    #[command(after_help = dmd::EXAMPLES, args_override_self = true)]
    Dmd(Box<dmd::DmdCommand>),
    /// Show how the heap changed over time, from a recording of DMD.
    #[command(after_help = history::EXAMPLES)]
    History(history::HistoryCommand),
    /// Show the memory that the program never freed, from a recording or a dump of DMD.
    #[command(after_help = leaks::EXAMPLES)]
    Leaks(leaks::LeaksCommand),
    /// Show the types of a heap, their waste, what keeps them alive, and async tasks.
    #[command(after_help = heap::EXAMPLES)]
    Heap(heap::HeapCommand),
    /// Analyze a heap snapshot (.fxsnapshot): census, dominators, paths.
    Snapshot(snapshot::SnapshotCommand),
    /// List the running processes that answer requests.
    #[command(after_help = list::EXAMPLES)]
    List(list::ListCommand),
    /// Save the reports of running processes, or a dump of DMD, to a file.
    #[command(after_help = save::EXAMPLES)]
    Save(save::SaveCommand),
    /// Write a line of JSON for each allocation of a running process.
    #[command(after_help = log::EXAMPLES)]
    Log(log::LogCommand),
    /// Show what changed between two reports, dumps, recordings or profiles.
    #[command(after_help = diff::EXAMPLES)]
    Diff(Box<diff::DiffCommand>),
    /// Show how amounts change over many reports.
    #[command(after_help = series::EXAMPLES)]
    Series(series::SeriesCommand),
    /// Check a report against a budget, or write a budget.
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckCommand),
    /// Write a page for a browser from a report, a dump, a recording or a difference.
    #[command(after_help = html::EXAMPLES)]
    Html(html::HtmlCommand),
    /// Write a file in the format of another tool: pprof, DHAT, Prometheus, Parquet ...
    #[command(after_help = export::EXAMPLES)]
    Export(Box<export::ExportCommand>),

    // Hidden commands: the end of `attach`, `mcp`, old spellings, and commands for installations.
    /// End an attachment: the process stops recording.
    #[command(after_help = attach::DETACH_EXAMPLES)]
    Detach(attach::DetachCommand),
    /// Answer an assistant's questions about files and processes, by the Model Context Protocol.
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(mcp::McpCommand),
    #[command(flatten)]
    HeapQuestion(heap::HeapQuestion),
    /// Save a DMD dump of a running process. `save --dump` does the same.
    #[command(after_help = dump::EXAMPLES)]
    Dump(dump::DumpCommand),
    /// Free caches in a running process. `show --minimize` also shows the reports afterwards.
    #[command(after_help = minimize::EXAMPLES)]
    Minimize(minimize::MinimizeCommand),
    /// Show running processes again and again. `show --interval` does the same.
    #[command(after_help = show::EXAMPLES)]
    Watch(Box<show::ShowCommand>),
    /// Write a report file or running processes as metrics. `export --format openmetrics` does the same, and with
    /// `--anonymize` it also leaves out private data.
    #[command(after_help = export::EXAMPLES)]
    Metrics(Box<metrics::MetricsCommand>),
    /// Print a shell script that completes the arguments of this program.
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsCommand),
    /// Print the manual page.
    #[command(after_help = completions::MAN_EXAMPLES)]
    Man(completions::ManCommand),
}

impl Command {
    /// Whether the command itself handles the signals that end a program.
    fn ends_by_itself(&self) -> bool {
        matches!(self, Self::Log(_) | Self::Run(_) | Self::Serve(_) | Self::Top(_) | Self::Track(_))
    }

    /// Returns the kinds of files that the command reads.
    fn kinds(&self) -> &'static [FileKind] {
        use FileKind::{Dump, HeapProfile, Pprof, Recording, Report};
        match self {
            Self::Show(_) | Self::Watch(_) | Self::Serve(_) | Self::Top(_) => FileKind::SHOWN,
            Self::Dmd(_) | Self::Leaks(_) => &[Dump, Recording, Pprof, HeapProfile],
            Self::History(_) => &[Recording],
            Self::Heap(heap) => heap.kinds(),
            Self::HeapQuestion(question) => question.kinds(),
            Self::Snapshot(snapshot) => snapshot.kinds(),
            Self::Diff(_) => &[Report, Dump, Recording, Pprof, HeapProfile],
            Self::Series(_) | Self::Check(_) | Self::Metrics(_) => &[Report],
            Self::Html(_) => &[Report, Dump, Recording, Pprof, HeapProfile],
            Self::Export(export) => export.kinds(),
            Self::Attach(_) | Self::Detach(_) => FileKind::ALL,
            // These commands read no file. `ALL` means that no error is replaced by a hint about a file's kind.
            Self::Run(_) | Self::Track(_) | Self::List(_) | Self::Save(_) | Self::Log(_) => FileKind::ALL,
            Self::Dump(_) | Self::Minimize(_) | Self::Completions(_) | Self::Man(_) => FileKind::ALL,
            Self::Mcp(_) => FileKind::ALL,
        }
    }

    /// Runs the command. Returns the exit status of a program that the command ran; `None` if it ran no program.
    fn run(self) -> Result<Option<ExitCode>, Failure> {
        match self {
            Self::Run(run) => return run.run().map(Some),
            Self::Attach(attach) => attach.run(),
            Self::Detach(detach) => detach.run(),
            Self::Track(track) => track.run(),
            Self::Show(show) => show.run(),
            Self::Top(top) => top.run(),
            Self::Serve(serve) => serve.run(),
            Self::Dmd(dmd) => dmd.run(),
            Self::History(history) => history.run(),
            Self::Leaks(leaks) => leaks.run(),
            Self::Heap(heap) => heap.run(),
            Self::Snapshot(snapshot) => snapshot.run(),
            Self::List(list) => list.run(),
            Self::Save(save) => save.run(),
            Self::Log(log) => log.run(),
            Self::Diff(diff) => diff.run(),
            Self::Series(series) => series.run(),
            Self::Check(check) => check.run(),
            Self::Html(html) => html.run(),
            Self::Export(export) => export.run(),
            Self::Mcp(mcp) => mcp.run(),
            Self::HeapQuestion(question) => question.run(),
            Self::Dump(dump) => dump.run(),
            Self::Minimize(minimize) => minimize.run(),
            Self::Watch(show) => show.watch(),
            Self::Metrics(metrics) => metrics.run(),
            Self::Completions(completions) => completions.run(help::parser()),
            Self::Man(man) => man.run(help::parser()),
        }
        .map(|()| None)
    }
}

/// The reason why a command failed.
enum Failure {
    /// A file or a process failed: its name, and the reason.
    File(String, anyhow::Error),
    /// The arguments are wrong or contradict each other.
    Usage(String),
    /// Amounts exceed their limits: one line for each limit.
    Exceeded(Vec<String>),
    /// Standard output could not be written.
    Output(std::io::Error),
}

impl Failure {
    /// Returns the lines of the message. `kinds` are the kinds of files that the command reads.
    fn lines(self, kinds: &[FileKind]) -> Vec<String> {
        match self {
            Self::File(file, error) => match file_kind::explain(&file, &error, kinds) {
                Some(explanation) => vec![format!("{file}: {explanation}")],
                None => vec![format!("{file}: {error}")],
            },
            Self::Usage(message) => vec![message],
            Self::Exceeded(reasons) => reasons,
            Self::Output(error) => vec![format!("cannot write: {error}")],
        }
    }
}

/// Returns the arguments in the spelling that the parser accepts.
fn spelled(arguments: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    // Whether a command has an option with this long name.
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
    let matches = help::parser().try_get_matches_from(spelled(std::env::args_os()));
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to stdout and is not an error. A closed stdout is not an error either.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    if !arguments.command.ends_by_itself() {
        // If this fails, a signal still ends the program, but temporary files stay.
        let _ = about_memory::live::before_ending(|| {});
    }
    let kinds = arguments.command.kinds();
    let outcome = arguments.command.run();
    // A thread may still own a temporary folder, because `top` does not wait for its requests.
    about_memory::temporary::remove_all();
    let failure = match outcome {
        Ok(status) => return status.unwrap_or(ExitCode::SUCCESS),
        Err(failure) => failure,
    };
    about_memory::live::wait_if_ending();
    let status = match &failure {
        Failure::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Failure::File(..) | Failure::Output(_) => 1,
        Failure::Usage(_) => 2,
        Failure::Exceeded(_) => 3,
    };
    failure.lines(kinds).iter().for_each(|line| say(line));
    ExitCode::from(status)
}

/// Longest line on stderr, in bytes without the newline.
const MAX_LINE: usize = 300;

/// Prints one line on stderr. Escapes foreign text, so that it can neither break the line nor control the terminal. A
/// long line loses its middle: the start names the file, and the end gives the reason.
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
