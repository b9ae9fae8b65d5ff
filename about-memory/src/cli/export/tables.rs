//! `about-memory export --format parquet`: tables that many runs share.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[cfg(not(feature = "parquet"))]
use super::super::Failure;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ParquetTable {
    /// Reports of a report file or process
    Reports,
    /// Warnings of a report file or process
    Warnings,
    /// Blocks by stack, owner and type, of a dump, recording or pprof profile
    Stacks,
    /// The frames of each stack
    Frames,
    /// Groups of a heap snapshot
    Census,
}

#[derive(Args)]
#[command(next_help_heading = "Options of the format parquet")]
pub(super) struct TableArguments {
    /// Add the run to the tables in this folder, and print the paths of the files. The folders of a file name the
    /// table, the date and the service. The same run always gets the same path.
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    pub(super) append_to: Option<PathBuf>,
    /// The table to write to --output. [default: reports, stacks or census, depending on the source]
    #[arg(long, value_enum)]
    pub(super) table: Option<ParquetTable>,
    /// The name of the service. [default: the name of the process or program]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// The version of the service.
    #[arg(long, value_name = "VERSION")]
    service_version: Option<String>,
    /// The name of the machine. [default: this machine]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The time at which the source was made, such as 2026-11-22T10:00:00Z, or in seconds since 1970. [default: now for
    /// a process; else the time in the file, or the file's modification time]
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    time: Option<std::time::Duration>,
    /// Add a label to the run, such as region=eu. Repeatable.
    #[arg(long = "run-label", alias = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE, such as region=eu".to_owned()),
    }
}

impl TableArguments {
    pub(super) fn is_chosen(&self) -> bool {
        let Self { append_to, table, service, service_version, host, time, labels } = self;
        (append_to.is_some() || table.is_some() || time.is_some() || !labels.is_empty())
            || [service, service_version, host].into_iter().any(Option::is_some)
    }
}

#[cfg(not(feature = "parquet"))]
impl super::ExportCommand {
    pub(super) fn tables(&self) -> Result<(), Failure> {
        Err(Failure::Usage(
            "this about-memory was built without the feature parquet; build it again with: cargo build --release \
             -p about-memory --features program,parquet"
                .to_owned(),
        ))
    }
}

#[cfg(feature = "parquet")]
mod write;

mod time;
