//! The command line of `memory-fleet`.

mod ask;
#[cfg(feature = "ballista")]
mod cluster;
mod collect;
mod compact;
mod import;
mod serve;
mod simulate;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::FleetError;

/// Collects, compacts and queries the memory reports of many processes
#[derive(Parser)]
#[command(
    name = "memory-fleet",
    version,
    about,
    after_help = "Exit status: 0 on success, 1 if something cannot be read or written, 2 for wrong usage, 3 if a limit of \
                  a budget does not hold.\n\nThe tables are described in docs/src/tables.md."
)]
struct Arguments {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Subcommand)]
enum FleetCommand {
    #[command(flatten)]
    Ask(ask::AskCommand),
    #[command(after_help = collect::EXAMPLES)]
    Collect(collect::CollectCommand),
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportCommand),
    #[command(after_help = compact::EXAMPLES)]
    Compact(compact::CompactCommand),
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::ServeCommand),
    #[cfg(feature = "ballista")]
    #[command(after_help = cluster::UP_EXAMPLES)]
    Up(cluster::UpCommand),
    #[cfg(feature = "ballista")]
    #[command(after_help = cluster::SCHEDULER_EXAMPLES)]
    Scheduler(cluster::SchedulerCommand),
    #[cfg(feature = "ballista")]
    #[command(after_help = cluster::EXECUTOR_EXAMPLES)]
    Executor(cluster::ExecutorCommand),
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(simulate::SimulateCommand),
}

/// The outcome of a command that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// A limit of a budget does not hold.
    Exceeded,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&FleetError::Output(error)),
    };
    let outcome = runtime.block_on(async {
        match arguments.command {
            FleetCommand::Ask(command) => command.run().await,
            FleetCommand::Collect(command) => command.run().await,
            FleetCommand::Import(command) => command.run(),
            FleetCommand::Compact(command) => command.run().await,
            FleetCommand::Serve(command) => command.run().await,
            #[cfg(feature = "ballista")]
            FleetCommand::Up(command) => command.run().await,
            #[cfg(feature = "ballista")]
            FleetCommand::Scheduler(command) => command.run().await,
            #[cfg(feature = "ballista")]
            FleetCommand::Executor(command) => command.run().await,
            FleetCommand::Simulate(command) => command.run(),
        }
    });
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Exceeded) => ExitCode::from(3),
        // The reader of the output has read enough.
        Err(FleetError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &FleetError) -> ExitCode {
    let _ = writeln!(io::stderr(), "memory-fleet: {error}");
    ExitCode::from(if matches!(error, FleetError::Usage(_)) { 2 } else { 1 })
}
