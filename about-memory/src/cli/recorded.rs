//! Reads recordings, and the blocks of one time from a dump or a recording.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use clap::Args;
use dmd_analyze::program::HeapOverview;
use dmd_analyze::recording::{Moment, Recording};
use dmd_analyze::{AnalyzeError, Dump, DumpReadOptions};
use memory_export::dmd::RecordingWindow;
use memory_export::pprof;

use super::dump_limits::is_stdin;
use super::file_kind::is_pprof;
use super::{Failure, progress, say};

/// The format of a file is detected in this many bytes at its start.
const START: usize = 8;

/// The time whose blocks a view shows.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BlockTime {
    /// Show the blocks at this time: `peak`, `end` or a time after the start such as `12.5s` or `1m30s`. A dump has
    /// only `peak` and `end`; at its peak, each block has the mean size of its stack's blocks. [default: peak if the
    /// heap has shrunk by a tenth since the peak, otherwise end; always end for the text of dmd.py, and for differences
    /// except those of `about-memory diff`]
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,
    /// In a recording: show the blocks that the program allocated between two times and that are alive at the second
    /// time.
    #[arg(long, num_args = 2, value_names = ["TIME", "TIME"], conflicts_with = "at")]
    between: Option<Vec<Moment>>,
}

impl BlockTime {
    /// Selects a part of a recording.
    pub(super) fn within(RecordingWindow { from, to }: RecordingWindow) -> Self {
        match from {
            None => Self { at: Some(to), between: None },
            Some(from) => Self { at: None, between: Some(vec![from, to]) },
        }
    }

    /// Whether the user chose a time.
    pub(super) fn is_chosen(&self) -> bool {
        self.at.is_some() || self.between.is_some()
    }

    /// Reads the blocks of a file at the time that the user chose. If the user chose no time, reads the blocks at
    /// `default`, or without `default` at the file's usual time. Also returns the file's overview of the whole run of
    /// the program. `symbolize` looks up the symbols.
    pub(super) fn read(
        &self,
        path: &Path,
        limits: &DumpReadOptions,
        default: Option<Moment>,
        symbolize: impl FnOnce(&mut Dump),
    ) -> Result<(Dump, HeapOverview), Failure> {
        self.select(DumpOrRecording::read(path, limits)?, path, default, symbolize)
    }

    /// Like [`read`](Self::read), for a file that was read before.
    pub(super) fn select(
        &self,
        source: DumpOrRecording,
        path: &Path,
        default: Option<Moment>,
        symbolize: impl FnOnce(&mut Dump),
    ) -> Result<(Dump, HeapOverview), Failure> {
        match source {
            DumpOrRecording::Dump(dump) => self.select_in_dump(*dump, path, default, symbolize),
            DumpOrRecording::Recording(recording) => {
                self.select_in_recording(*recording, path, default, symbolize)
            }
        }
    }

    /// Like [`read`](Self::read), for a dump that was read before.
    pub(super) fn select_in_dump(
        &self,
        mut dump: Dump,
        path: &Path,
        default: Option<Moment>,
        symbolize: impl FnOnce(&mut Dump),
    ) -> Result<(Dump, HeapOverview), Failure> {
        let failure = |error| failure(path, error);
        let at = match (self.at, &self.between) {
            (Some(Moment::Peak), None) => Some(dmd_analyze::DumpTime::Peak),
            (Some(Moment::End), None) => Some(dmd_analyze::DumpTime::End),
            (None, None) => None,
            _ => return Err(failure(AnalyzeError::OneTime)),
        };
        symbolize(&mut dump);
        let overview = HeapOverview::new(&dump, at);
        let by_default = match default {
            Some(Moment::End) => dmd_analyze::DumpTime::End,
            _ => overview.at,
        };
        let dump = dump.at(at.unwrap_or(by_default)).map_err(failure)?;
        Ok((dump, overview))
    }

    /// Returns the part of a recording that the user chose. If the user chose no part, returns the part until
    /// `default`, or without `default` the part until the recording's usual time.
    pub(super) fn window(
        &self,
        recording: &mut Recording,
        path: &Path,
        default: Option<Moment>,
    ) -> Result<RecordingWindow, Failure> {
        let (from, to) = match (self.at.or(default), self.between.as_deref()) {
            (_, Some([from, to])) => (Some(*from), *to),
            (Some(moment), _) => (None, moment),
            (None, _) => (None, recording.usual_moment().map_err(|error| failure(path, error))?),
        };
        Ok(RecordingWindow { from, to })
    }

    fn select_in_recording(
        &self,
        mut recording: Recording,
        path: &Path,
        default: Option<Moment>,
        symbolize: impl FnOnce(&mut Dump),
    ) -> Result<(Dump, HeapOverview), Failure> {
        let RecordingWindow { from, to } = self.window(&mut recording, path, default)?;
        let dump = match from {
            Some(from) => recording.between(from, to),
            None => recording.state_at(to),
        };
        let mut dump = dump.map_err(|error| failure(path, error))?;
        say_warnings(path, &recording);
        symbolize(&mut dump);
        let overview = HeapOverview::new(&dump, None);
        Ok((dump, overview))
    }
}

/// A dump, or a recording.
pub(super) enum DumpOrRecording {
    Dump(Box<Dump>),
    Recording(Box<Recording>),
}

impl DumpOrRecording {
    /// Reads a file; `-` is standard input.
    pub(super) fn read(path: &Path, limits: &DumpReadOptions) -> Result<Self, Failure> {
        let failure = |error| failure(path, error);
        if !is_stdin(path) {
            if Recording::is_at(path) {
                return open(path, limits).map(|opened| Self::Recording(Box::new(opened))).map_err(failure);
            }
            if is_pprof(path) {
                return read_pprof(path, limits).map(|dump| Self::Dump(Box::new(dump)));
            }
            return dmd_analyze::read_with(path, limits)
                .map(|dump| Self::Dump(Box::new(dump)))
                .map_err(failure);
        }
        let mut stdin = io::stdin().lock();
        let mut start = Vec::new();
        let read = (&mut stdin).take(START as u64).read_to_end(&mut start);
        read.map_err(|error| failure(memory_report::ReadError::Io(error).into()))?;
        let is_recording = Recording::is_start(&start);
        let stream = start.as_slice().chain(stdin);
        match is_recording {
            true => Recording::from_stream(stream, limits).map(|read| Self::Recording(Box::new(read))),
            false => dmd_analyze::read_from(stream, limits).map(|dump| Self::Dump(Box::new(dump))),
        }
        .map_err(failure)
    }

    /// The time that a view of the file shows by default.
    pub(super) fn usual_time(&mut self, path: &Path) -> Result<Moment, Failure> {
        match self {
            Self::Dump(dump) => Ok(match HeapOverview::new(dump, None).at {
                dmd_analyze::DumpTime::Peak => Moment::Peak,
                _ => Moment::End,
            }),
            Self::Recording(recording) => recording.usual_moment().map_err(|error| failure(path, error)),
        }
    }

    /// Returns the dump. For a recording, the error names the missing data (`lacks`) and the mode of DMD that records
    /// it.
    pub(super) fn into_dump(self, path: &Path, lacks: &str, mode: &str) -> Result<Dump, Failure> {
        match self {
            Self::Dump(dump) => Ok(*dump),
            Self::Recording(_) => Err(Failure::File(
                path.display().to_string(),
                anyhow::anyhow!(
                    "a recording does not have {lacks}; take a dump with: about-memory run --mode {mode} -- PROGRAM"
                ),
            )),
        }
    }
}

fn open(path: &Path, limits: &DumpReadOptions) -> Result<Recording, AnalyzeError> {
    let file = File::open(path).map_err(memory_report::ReadError::Io)?;
    let mut recording = Recording::from_file(file, limits)?;
    recording.set_progress(progress::show_replay(path.display().to_string()));
    Ok(recording)
}

/// Reads a profile as a dump.
fn read_pprof(path: &Path, limits: &DumpReadOptions) -> Result<Dump, Failure> {
    let failure = |error| Failure::File(path.display().to_string(), error);
    let options =
        pprof::PprofReadOptions::new().max_bytes(limits.byte_limit()).max_entries(limits.entry_limit());
    let file = File::open(path).map_err(|error| failure(error.into()))?;
    let profile = pprof::read(file, &options).map_err(|error| failure(error.into()))?;
    memory_export::dmd::dump(&profile).ok_or_else(|| {
        failure(anyhow::anyhow!(
            "has no blocks with bytes, or is a difference; read it with: about-memory show"
        ))
    })
}

/// Reads a recording; `-` is standard input.
pub(super) fn read(path: &Path, limits: &DumpReadOptions) -> Result<Recording, Failure> {
    match DumpOrRecording::read(path, limits)? {
        DumpOrRecording::Recording(recording) => Ok(*recording),
        DumpOrRecording::Dump(_) => {
            let reason = "a dump has no history; record a program with: about-memory run --record FILE";
            Err(Failure::File(path.display().to_string(), anyhow::anyhow!(reason)))
        }
    }
}

/// Prints the warnings of a recording.
pub(super) fn say_warnings(path: &Path, recording: &Recording) {
    for warning in recording.warnings() {
        say(&format!("{}: {warning}", path.display()));
    }
}

fn failure(path: &Path, error: AnalyzeError) -> Failure {
    Failure::File(path.display().to_string(), error.into())
}
