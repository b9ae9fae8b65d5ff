//! Report files named on the command line, and running processes in their place.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use memory_report::file::{self, ReadOptions};
use memory_report::{ReadError, ReportSet};

use super::progress::Progress;
use super::{Failure, live_input, say};

/// A report file, compressed or not, `-` for standard input; or the number of a running process.
#[derive(Clone, Debug)]
pub(crate) struct Input(PathBuf);

/// Limits when reading, the same for all files of a command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Reading {
    /// Read at most this many bytes of uncompressed text of a file.
    #[arg(long, value_name = "BYTES", default_value_t = ReadOptions::default().max_bytes)]
    max_bytes: u64,
}

impl Reading {
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions::new().max_bytes(self.max_bytes)
    }

    /// The same, for a dump of DMD.
    pub(crate) fn dump_options(&self) -> dmd::analyze::ReadOptions {
        dmd::analyze::ReadOptions::new().max_bytes(self.max_bytes)
    }
}

impl From<OsString> for Input {
    fn from(name: OsString) -> Self {
        Self(name.into())
    }
}

impl Input {
    /// The name as it was given.
    pub(crate) fn name(&self) -> String {
        self.0.display().to_string()
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.0.as_os_str() == "-"
    }

    /// A process's number: a number that is not a file's name.
    pub(crate) fn pid(&self) -> Option<u32> {
        let pid = self.0.to_str()?.parse().ok()?;
        (!self.0.exists()).then_some(pid)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn read(&self, reading: &Reading) -> Result<ReportSet, Failure> {
        let options = reading.options();
        if let Some(pid) = self.pid() {
            return live_input::read(pid, options);
        }
        let result = if self.is_stdin() {
            file::read_from(io::stdin().lock(), &options)
        } else {
            match std::fs::metadata(&self.0) {
                Ok(metadata) if metadata.is_file() => File::open(&self.0)
                    .map_err(ReadError::Io)
                    .map(|file| Progress::new(file, self.name(), metadata.len()))
                    .and_then(|file| file::read_from(file, &options)),
                // Tells what is wrong.
                _ => file::read_with(&self.0, &options),
            }
        };
        result.map_err(|error| Failure::File(self.name(), error.into()))
    }

    /// Reads two files at once; the first one's error comes first.
    pub(crate) fn read_two(
        first: &Self,
        second: &Self,
        reading: &Reading,
    ) -> Result<(ReportSet, ReportSet), Failure> {
        if first.is_stdin() && second.is_stdin() {
            return Err(Failure::Usage("only one file can be standard input".to_owned()));
        }
        // Nobody waits for standard input if the other cannot be read.
        if first.is_stdin() {
            let second = second.read(reading)?;
            return Ok((first.read(reading)?, second));
        }
        if second.is_stdin() {
            return Ok((first.read(reading)?, second.read(reading)?));
        }
        std::thread::scope(|scope| {
            let helper = std::thread::Builder::new().spawn_scoped(scope, || second.read(reading));
            let first = first.read(reading)?;
            let second = match helper {
                Ok(helper) => helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // A thread that cannot be had costs time only.
                Err(_) => second.read(reading),
            }?;
            Ok((first, second))
        })
    }
}

/// Tells on stderr that the text on stdout starts with warnings.
pub(crate) fn say_warnings(name: &str, count: usize) {
    if count > 0 {
        let plural = if count == 1 { "" } else { "s" };
        say(&format!("{name}: {count} warning{plural}, shown at the top of the text"));
    }
}
