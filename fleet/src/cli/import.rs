//! `import`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Outcome;
use crate::error::FleetError;
use crate::import::{RunFacts, import};

pub(super) const EXAMPLES: &str = "Examples:\n  memory-fleet import fleet reports/ --service search --service-version 1.2\n  memory-fleet import fleet \
     memory-report.json.gz --time 1763856000\n\nabout-memory export --append-to adds dumps, recordings and heap snapshots.";

/// Add report files to the tables
#[derive(Args)]
pub(super) struct ImportCommand {
    /// The folder of the tables
    folder: PathBuf,
    /// Report files, and folders with report files (*.json, *.json.gz)
    #[arg(required = true)]
    sources: Vec<PathBuf>,
    /// The name of the service [default: the name of the process]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// The version of the service
    #[arg(long, value_name = "VERSION")]
    service_version: Option<String>,
    /// The name of the machine [default: this machine]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The time of the reports, in seconds since 1970 [default: the modification time of each file]
    #[arg(long, value_name = "SECONDS")]
    time: Option<u64>,
    /// Add a label, such as region=eu; repeatable
    #[arg(long = "run-label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE, such as region=eu".to_owned()),
    }
}

impl ImportCommand {
    pub(super) fn run(self) -> Result<Outcome, FleetError> {
        let Self { folder, sources, service, service_version, host, time, labels } = self;
        let facts = RunFacts {
            service,
            version: service_version,
            host,
            time: time.map(Duration::from_secs),
            labels: labels.into_iter().collect(),
        };
        let done = import(&folder, &sources, &facts)?;
        for file in &done.files {
            writeln!(io::stdout(), "{}", file.display()).map_err(FleetError::Output)?;
        }
        for reason in &done.skipped {
            writeln!(io::stderr(), "memory-fleet: skipped {reason}").map_err(FleetError::Output)?;
        }
        Ok(Outcome::Done)
    }
}
