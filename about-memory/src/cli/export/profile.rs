//! Stacks from processes, dumps and recordings of DMD, and pprof profiles.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};

use about_memory::live;
use about_memory::temporary::TemporaryFolder;
use dmd_analyze::recording::{Moment, Recording};
use dmd_analyze::{AnalyzeError, Dump};
use memory_export::dmd::{self, ProfileError, ProfileOptions, RecordingHistory};
use memory_export::{ProfileFormat, StackProfile, pprof};

use super::super::Failure;
use super::super::dump_limits::DumpLimits;
use super::super::input::InputArgument;
use super::super::live_input::{self, DEFAULT_DUMP_TIMEOUT};
use super::super::progress::ReadProgress;
use super::super::recorded::{BlockTime, DumpOrRecording, say_warnings};
use super::super::symbols::SymbolSearch;

/// A source of stacks.
pub(crate) enum StackSource {
    Heap(DumpOrRecording),
    Pprof(Box<StackProfile>),
}

impl From<DumpOrRecording> for StackSource {
    fn from(source: DumpOrRecording) -> Self {
        Self::Heap(source)
    }
}

/// Reads a dump, a recording or a pprof profile, or requests a dump from a process.
pub(crate) fn read(input: &InputArgument, limits: &DumpLimits) -> Result<StackSource, Failure> {
    if let Some(pid) = input.process()? {
        let failure =
            |error: io::Error| Failure::File(std::env::temp_dir().display().to_string(), error.into());
        let folder = TemporaryFolder::new().map_err(failure)?;
        let file = folder.path().join("dmd.json");
        live::save_dump(pid, &file, DEFAULT_DUMP_TIMEOUT)
            .map_err(|error| live_input::failure(&[pid], error))?;
        return read_from(input, File::open(&file).map_err(failure)?, limits);
    }
    if input.is_stdin() {
        return read_from(input, io::stdin().lock(), limits);
    }
    match std::fs::metadata(input.path()) {
        Ok(metadata) if metadata.is_file() && !Recording::is_at(input.path()) => {
            let file = File::open(input.path()).map_err(|error| Failure::File(input.name(), error.into()))?;
            read_from(input, ReadProgress::new(file, input.name(), metadata.len()), limits)
        }
        // Reads a recording. If the path is neither a recording nor a file, the error contains the path.
        _ => DumpOrRecording::read(input.path(), &limits.options()).map(StackSource::from),
    }
}

fn read_from(input: &InputArgument, reader: impl Read, limits: &DumpLimits) -> Result<StackSource, Failure> {
    let failure = |error: anyhow::Error| Failure::File(input.name(), error);
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let start = reader.fill_buf().map_err(|error| failure(error.into()))?;
    if pprof::is_pprof(start) {
        let limits = limits.options();
        let options =
            pprof::PprofReadOptions::new().max_bytes(limits.byte_limit()).max_entries(limits.entry_limit());
        return pprof::read(reader, &options)
            .map(|stacks| StackSource::Pprof(Box::new(stacks)))
            .map_err(|error| failure(error.into()));
    }
    if Recording::is_start(start) {
        return Recording::from_stream(reader, &limits.options())
            .map(|recording| DumpOrRecording::Recording(Box::new(recording)).into())
            .map_err(|error| failure(error.into()));
    }
    match dmd_analyze::read_from(reader, &limits.options()) {
        Ok(dump) => Ok(DumpOrRecording::Dump(Box::new(dump)).into()),
        Err(AnalyzeError::Version(version)) if version == "1" => Err(failure(anyhow::anyhow!(
            "is a memory report and has no stacks; the formats of reports are openmetrics, prometheus, \
             chrome-trace and parquet"
        ))),
        Err(error) => Err(failure(error.into())),
    }
}

/// The settings for the conversion of a source to stacks.
pub(crate) struct StackConversion<'a> {
    pub(crate) symbols: Option<&'a SymbolSearch>,
    /// Whether frames also keep the linker's names of functions. Only pprof contains these names.
    pub(crate) system_names: bool,
    pub(crate) limits: &'a DumpLimits,
    pub(crate) when: &'a BlockTime,
    pub(crate) options: ProfileOptions,
}

/// The data that an export is written from.
pub(crate) enum ConvertedStacks {
    Stacks(Box<StackProfile>),
    /// The blocks of a recording in the chosen time, and the recording with their allocations and frees.
    RecordingHistory(Box<RecordingHistory>, Box<Recording>),
}

impl ConvertedStacks {
    /// Writes the data. Returns the number of blocks that are missing from the format's counts.
    pub(crate) fn write(
        &mut self,
        format: ProfileFormat,
        options: &pprof::PprofOptions,
        out: &mut dyn Write,
    ) -> Result<u64, ProfileError> {
        match self {
            Self::Stacks(stacks) => Ok(format.write(stacks, options, out)?),
            Self::RecordingHistory(history, recording) => {
                history.write(recording, format, options, out)?;
                Ok(0)
            }
        }
    }
}

impl StackConversion<'_> {
    /// Reads a source and converts it to the data of the format.
    pub(crate) fn made(
        &self,
        input: &InputArgument,
        format: ProfileFormat,
    ) -> Result<ConvertedStacks, Failure> {
        match self.source(input)? {
            StackSource::Heap(DumpOrRecording::Recording(recording)) if format.has_history() => {
                // By default, heaptrack and DHAT show the whole run of the program. Other formats show the time until
                // the recording's usual time.
                let is_whole = matches!(format, ProfileFormat::Heaptrack | ProfileFormat::Dhat);
                self.history(input, recording, is_whole.then_some(Moment::End))
            }
            profile => Ok(ConvertedStacks::Stacks(Box::new(self.stacks(input, profile)?))),
        }
    }

    /// Returns the stacks of a source. For a dump or a recording, these are the blocks at the chosen time.
    pub(crate) fn stacks(
        &self,
        input: &InputArgument,
        profile: StackSource,
    ) -> Result<StackProfile, Failure> {
        match profile {
            StackSource::Pprof(stacks) => Ok(*stacks),
            StackSource::Heap(source) => dmd::stacks(self.prepared(input, source, None)?, &self.options)
                .map_err(|error| Failure::File(input.name(), error.into())),
        }
    }

    fn history(
        &self,
        input: &InputArgument,
        mut recording: Box<Recording>,
        default: Option<Moment>,
    ) -> Result<ConvertedStacks, Failure> {
        let window = self.when.window(&mut recording, input.path(), default)?;
        let history =
            RecordingHistory::new(&mut recording, window, &self.options, |dump| self.symbolize(dump));
        say_warnings(input.path(), &recording);
        let history = history.map_err(|error| Failure::File(input.name(), error.into()))?;
        Ok(ConvertedStacks::RecordingHistory(Box::new(history), recording))
    }

    fn symbolize(&self, dump: &mut Dump) {
        match self.symbols {
            Some(symbols) if self.system_names => {
                symbols.fix_with_system_names(dump, &self.limits.options());
            }
            Some(symbols) => symbols.fix(dump, &self.limits.options()),
            None => {}
        }
    }

    /// Returns the blocks of the chosen time, with symbols.
    fn prepared(
        &self,
        input: &InputArgument,
        source: DumpOrRecording,
        default: Option<Moment>,
    ) -> Result<Dump, Failure> {
        let name = input.name();
        self.when.select(source, name.as_ref(), default, |dump| self.symbolize(dump)).map(|(dump, _)| dump)
    }

    pub(crate) fn source(&self, input: &InputArgument) -> Result<StackSource, Failure> {
        let profile = read(input, self.limits)?;
        if matches!(profile, StackSource::Pprof(_)) && self.when.is_chosen() {
            return Err(Failure::Usage(format!(
                "{}: a pprof profile has one time; --at and --between are for dumps and recordings",
                input.name()
            )));
        }
        Ok(profile)
    }

    /// Returns the growth of the second dump over the first.
    pub(crate) fn difference(
        &self,
        first: &InputArgument,
        second: &InputArgument,
    ) -> Result<StackProfile, Failure> {
        let dump = |input: &InputArgument| match read(input, self.limits)? {
            StackSource::Heap(source) => self.prepared(input, source, Some(Moment::End)),
            StackSource::Pprof(_) => Err(Failure::Usage(format!(
                "{}: a difference needs two dumps; for two pprof profiles use about-memory diff",
                input.name()
            ))),
        };
        let (first_dump, second_dump) = (dump(first)?, dump(second)?);
        dmd::difference(first_dump, second_dump, &self.options)
            .map_err(|error| Failure::File(second.name(), error.into()))
    }
}
