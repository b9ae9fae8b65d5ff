//! Report files and running processes named on the command line.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use memory_report::file::{self, ReadOptions};
use memory_report::{ReadError, ReportSet};

use super::progress::ReadProgress;
use super::{Failure, live_input, say};

/// A report file, compressed or not; `-` for standard input; or the process id or the name of a running process.
#[derive(Clone, Debug)]
pub(crate) struct InputArgument(PathBuf);

/// Limits on reading, the same for all files of a command.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReadLimits {
    /// Read at most this many bytes per file, uncompressed.
    #[arg(long, value_name = "BYTES", default_value_t = ReadOptions::MAX_BYTES)]
    max_bytes: u64,
}

impl ReadLimits {
    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions::new().max_bytes(self.max_bytes)
    }

    /// The same limits for a DMD dump.
    pub(crate) fn dump_options(&self) -> dmd_analyze::DumpReadOptions {
        dmd_analyze::DumpReadOptions::new().max_bytes(self.max_bytes)
    }
}

impl From<OsString> for InputArgument {
    fn from(name: OsString) -> Self {
        Self(name.into())
    }
}

impl InputArgument {
    /// The name as given.
    pub(crate) fn name(&self) -> String {
        self.0.display().to_string()
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.0.as_os_str() == "-"
    }

    /// The process id, if the name is a number and no file has this name.
    pub(crate) fn pid(&self) -> Option<u32> {
        let pid = self.0.to_str()?.parse().ok()?;
        (!self.0.exists()).then_some(pid)
    }

    /// Returns the process id of the running process that this argument names, by its id or its own name. `None` if a
    /// file has this name, or if no listening process has this name.
    ///
    /// # Errors
    ///
    /// Returns an error if several listening processes have the name, or if the process with the name uses another
    /// version of the protocol.
    pub(crate) fn process(&self) -> Result<Option<u32>, Failure> {
        match self.pid() {
            Some(pid) => Ok(Some(pid)),
            None if self.is_stdin() || self.0.exists() => Ok(None),
            None => live_input::process_named(&self.name()),
        }
    }

    /// Whether only this user may read the source: a running process, or a file whose mode excludes other users. Output
    /// from a private source is also private.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`process`](Self::process).
    pub(crate) fn is_private(&self) -> Result<bool, Failure> {
        if self.is_stdin() {
            return Ok(stdin_file().is_some_and(|file| is_private(&file)));
        }
        Ok(self.process()?.is_some() || std::fs::metadata(&self.0).is_ok_and(|file| is_private(&file)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn read(&self, reading: &ReadLimits) -> Result<ReportSet, Failure> {
        self.read_with(reading.options())
    }

    pub(crate) fn read_with(&self, options: ReadOptions) -> Result<ReportSet, Failure> {
        if let Some(pid) = self.process()? {
            return live_input::read(pid, options);
        }
        let result = if self.is_stdin() {
            file::read_from(io::stdin().lock(), &options)
        } else {
            match std::fs::metadata(&self.0) {
                Ok(metadata) if metadata.is_file() => File::open(&self.0)
                    .map_err(ReadError::Io)
                    .map(|file| ReadProgress::new(file, self.name(), metadata.len()))
                    .and_then(|file| file::read_from(file, &options)),
                // If the path is wrong, reading it returns the error.
                _ => file::read_with(&self.0, &options),
            }
        };
        result.map_err(|error| Failure::File(self.name(), error.into()))
    }

    /// Reads two files at the same time. If both fail, returns the error of the first file. If one of them is standard
    /// input, reads the other file before it.
    pub(crate) fn read_two(
        first: &Self,
        second: &Self,
        reading: &ReadLimits,
    ) -> Result<(ReportSet, ReportSet), Failure> {
        if first.is_stdin() && second.is_stdin() {
            return Err(Failure::Usage("standard input can be given only once".to_owned()));
        }
        // Reads the file first. If the file cannot be read, the command fails without waiting for standard input.
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
                // Without a second thread, read one file after the other.
                Err(_) => second.read(reading),
            }?;
            Ok((first, second))
        })
    }
}

/// Whether the mode of a file lets only its owner read it.
#[cfg(unix)]
fn is_private(file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    file.is_file() && file.mode() & 0o044 == 0
}

/// Files have no mode on this platform: the folder decides who may read them.
#[cfg(not(unix))]
fn is_private(_: &Metadata) -> bool {
    false
}

/// The metadata of standard input; `None` if the system does not return it.
#[cfg(unix)]
fn stdin_file() -> Option<Metadata> {
    use std::os::fd::AsFd as _;
    File::from(io::stdin().as_fd().try_clone_to_owned().ok()?).metadata().ok()
}

#[cfg(not(unix))]
fn stdin_file() -> Option<Metadata> {
    None
}

/// The inputs as process ids.
///
/// # Errors
///
/// Returns the same errors as [`pid`].
pub(crate) fn pids(inputs: &[InputArgument]) -> Result<Vec<u32>, Failure> {
    inputs.iter().map(pid).collect()
}

/// The input as a process id.
///
/// # Errors
///
/// Returns an error if a file has this name, or if the input is neither a number nor the name of exactly one listening
/// process.
pub(crate) fn pid(input: &InputArgument) -> Result<u32, Failure> {
    let not_one = || {
        Failure::Usage(format!(
            "{}: no running process has this id or name; list the processes with: about-memory list",
            input.name()
        ))
    };
    input.process()?.ok_or_else(not_one)
}

/// Prints on stderr that the text on stdout starts with warnings.
pub(crate) fn say_warnings(name: &str, count: usize) {
    if count > 0 {
        let plural = if count == 1 { "" } else { "s" };
        say(&format!("{name}: {count} warning{plural}, shown at the top of the text"));
    }
}
