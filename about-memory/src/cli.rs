//! The command line: what is asked for, exit status, and errors in one line.

mod block;
mod coverage;
mod dmd;
mod show;
mod symbols;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  about-memory show memory-report.json.gz
  about-memory show memory-report.json.gz --verbose --filter explicit/cache
  zcat memory-report.json.gz | about-memory show -

Exit status: 0 if all is well, 1 if a file cannot be read, 2 for wrong usage.";

/// Shows memory reports as Firefox's about:memory does.
#[derive(Parser)]
#[command(name = "about-memory", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a report file as text.
    #[command(after_help = EXAMPLES)]
    Show(show::Show),
    /// Show who allocated what is in a dump of DMD, as text.
    Dmd(Box<dmd::Dmd>),
    /// Show how much of the heap reporters know, by a dump of DMD's dark-matter mode.
    Coverage(coverage::Coverage),
    /// Show who points to a block in a dump of DMD's scan mode.
    Block(block::Block),
}

/// Why a command failed.
enum Failure {
    /// A file could not be read: its name, and the reason.
    File(String, anyhow::Error),
    /// The arguments make no sense.
    Usage(String),
    /// The text could not be written.
    Output(std::io::Error),
}

pub(crate) fn run() -> ExitCode {
    let arguments = match Arguments::try_parse_from(block::spelled(std::env::args_os())) {
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
    };
    let (line, status) = match result {
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
