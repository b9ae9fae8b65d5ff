//! Reads a dump as a stream. The reader keeps only the [`Dump`] and a window of the text in memory.
//!
//! As in Python's JSON reader, the last of several equal keys counts, and the order of keys does not matter. The reader
//! skips unknown keys. It checks everything that the format requires. Each error contains the place of the fault.

mod allocators;
mod block;
mod faults;
mod heap_profile;
mod memory;
mod peak;
mod tables;
mod value;
mod weights;

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use dmd_format::Mode;
use dmd_format::kept_dump::LifeSign;
use memory_report::ReadError;
use memory_report::reader::{TextSource, TextWindow, ValueSkip};

use super::allocators::DumpAllocator;
use super::frames::{CallId, CallTable};
use super::keys::DumpKeys;
use super::measurements::EngineMemory;
use super::memory::MemoryByOwner;
use super::peak::{DumpPeak, DumpStatistics};
use super::{BlackBoxDump, BlockContents, Dump, DumpBlock, LoadedModule, ReporterAmounts};
use crate::error::AnalyzeError;
use faults::WrittenFault;
use value::{ValueKind, shorten};

pub use heap_profile::is_heap_profile;
use weights::LARGEST_MEAN;

/// Limits for the reader, and the parts of a dump to leave out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpReadOptions {
    pub(crate) max_bytes: u64,
    pub(crate) max_entries: usize,
    pub(crate) contents: bool,
}

impl Default for DumpReadOptions {
    fn default() -> Self {
        Self { max_bytes: Self::MAX_BYTES, max_entries: Self::MAX_ENTRIES, contents: false }
    }
}

impl DumpReadOptions {
    /// The default of [`max_bytes`](Self::max_bytes).
    pub const MAX_BYTES: u64 = 1 << 30;
    /// The default of [`max_entries`](Self::max_entries).
    pub const MAX_ENTRIES: usize = 10_000_000;

    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of bytes of decompressed text. Default: 1 GiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the maximum number of entries. A block counts as one entry, and a trace or a frame as two entries. Eight
    /// words of contents or eight frames of a trace count as one entry. Default: 10,000,000.
    #[must_use]
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.max_entries = entries;
        self
    }

    /// Sets whether the reader keeps the contents of blocks (scan mode). Default: no.
    #[must_use]
    pub fn contents(mut self, kept: bool) -> Self {
        self.contents = kept;
        self
    }

    /// The value of [`max_bytes`](Self::max_bytes).
    pub fn byte_limit(&self) -> u64 {
        self.max_bytes
    }

    /// The value of [`max_entries`](Self::max_entries).
    pub fn entry_limit(&self) -> usize {
        self.max_entries
    }
}

/// Reads a dump, compressed or not. The reader looks at the first bytes of the file, not at the name.
///
/// # Errors
///
/// Returns an error if `path` is not a regular file (the reader never waits for a pipe), if the file cannot be read, if
/// it is larger than the limits of [`DumpReadOptions`], or if it is not a valid dump.
pub fn read(path: impl AsRef<Path>) -> Result<Dump, AnalyzeError> {
    read_with(path, &DumpReadOptions::default())
}

/// Reads a dump with the given options.
///
/// # Errors
///
/// Returns the same errors as [`read`].
pub fn read_with(path: impl AsRef<Path>, options: &DumpReadOptions) -> Result<Dump, AnalyzeError> {
    read_from(open(path.as_ref())?, options)
}

/// Reads a dump from a stream, compressed or not, up to the stream's end.
///
/// # Errors
///
/// Returns an error if the stream cannot be read, if it is larger than the limits of [`DumpReadOptions`], or if it is
/// not a valid dump.
pub fn read_from(reader: impl Read, options: &DumpReadOptions) -> Result<Dump, AnalyzeError> {
    let mut reader = reader;
    let mut head = Vec::new();
    let head_bytes = LifeSign::OFFSET + LifeSign::BYTES as u64;
    reader.by_ref().take(head_bytes).read_to_end(&mut head).map_err(ReadError::Io)?;
    let life = LifeSign::find(&head).filter(|sign| sign.milliseconds > 0);
    let source = TextSource::open(Cursor::new(head).chain(reader))?;
    let mut window = TextWindow::new(source, options.max_bytes);
    if window.take(|scan| Ok(scan.peek()? == b'h'))? {
        return heap_profile::read(&mut window, options);
    }
    let mut reader = DumpReader {
        window,
        options,
        version: false,
        invocation: None,
        blocks: None,
        scanned: Vec::new(),
        words: Vec::new(),
        trace_keys: DumpKeys::default(),
        frame_keys: DumpKeys::default(),
        traces: None,
        calls: Vec::new(),
        frames: None,
        modules: None,
        reporters: Vec::new(),
        faults: Vec::new(),
        time: None,
        process: None,
        resident_peak: None,
        measurements: EngineMemory::default(),
        memory: None,
        peak: None,
        statistics: None,
        allocators: Vec::new(),
        unseen_frees: 0,
        older_bytes: 0,
        total: 0,
        black_box: None,
    };
    match (reader.top(), &mut reader.black_box) {
        (Ok(()), _) => {}
        // The process was killed. The parts before the end of the file are complete.
        (Err(AnalyzeError::Read(ReadError::Truncated(_))), Some(facts)) => facts.is_partial = true,
        (Err(error), _) => return Err(error),
    }
    if let Some(facts) = &mut reader.black_box {
        facts.life = life;
    }
    reader.dump()
}

/// Opens a file. Fails if it is not a regular file.
pub(crate) fn open(path: &Path) -> Result<File, AnalyzeError> {
    let metadata = std::fs::metadata(path).map_err(ReadError::Io)?;
    if metadata.is_dir() {
        return Err(ReadError::Directory.into());
    }
    if !metadata.is_file() {
        return Err(ReadError::NotAFile.into());
    }
    Ok(File::open(path).map_err(ReadError::Io)?)
}

struct InvocationMembers {
    variable: Option<String>,
    mode: Mode,
    sample_bytes: Option<u64>,
}

struct DumpReader<'o, R: Read> {
    window: TextWindow<R>,
    options: &'o DumpReadOptions,
    version: bool,
    invocation: Option<InvocationMembers>,
    /// The blocks. The trace of a block contains the number of a key, not yet the index of a trace.
    blocks: Option<Vec<DumpBlock>>,
    scanned: Vec<BlockContents>,
    words: Vec<u64>,
    trace_keys: DumpKeys,
    frame_keys: DumpKeys,
    /// The range of each trace in `calls`, by the number of its key.
    traces: Option<Vec<Option<core::ops::Range<u32>>>>,
    /// The frames of all traces, as numbers of keys.
    calls: Vec<u32>,
    /// The frames, and the id of each by the number of its key.
    frames: Option<(CallTable, Vec<Option<CallId>>)>,
    modules: Option<Vec<LoadedModule>>,
    reporters: Vec<ReporterAmounts>,
    faults: Vec<WrittenFault>,
    time: Option<u64>,
    process: Option<u64>,
    resident_peak: Option<u64>,
    measurements: EngineMemory,
    memory: Option<Result<MemoryByOwner, String>>,
    peak: Option<DumpPeak>,
    statistics: Option<DumpStatistics>,
    allocators: Vec<DumpAllocator>,
    unseen_frees: u64,
    older_bytes: u64,
    /// The bytes of all blocks.
    total: i128,
    black_box: Option<BlackBoxDump>,
}

impl<R: Read> DumpReader<'_, R> {
    fn top(&mut self) -> Result<(), AnalyzeError> {
        self.blanks()?;
        if !self.next_is(b'{')? {
            self.skip(0)?;
            self.end()?;
            return Err(AnalyzeError::NotADump);
        }
        self.members("the dump", &mut |reader, key| match key {
            "version" => reader.version(),
            "invocation" => reader.invocation(),
            "blackBox" => reader.black_box(),
            "blockList" => reader.block_list(),
            "traceTable" => reader.trace_table(),
            "frameTable" => reader.frame_table(),
            "modules" => reader.modules(),
            "allocators" => reader.allocators(),
            "dropped" => reader.dropped(),
            "olderBytes" => reader.older_bytes(),
            "process" => reader.process(),
            "measurements" => reader.measurements(),
            "mappings" => reader.memory(),
            "peak" => reader.peak(),
            "statistics" => reader.statistics(),
            "reportPaths" => reader.reporters(),
            "reportFaults" => reader.faults(),
            _ => reader.skip(1),
        })?;
        self.end()
    }

    fn version(&mut self) -> Result<(), AnalyzeError> {
        let written = self.written(1)?;
        if written.parse::<f64>() != Ok(5.0) {
            return Err(AnalyzeError::Version(written));
        }
        self.version = true;
        Ok(())
    }

    fn invocation(&mut self) -> Result<(), AnalyzeError> {
        let mut variable = None;
        let mut mode = None;
        let mut sample_bytes = None;
        self.members("invocation", &mut |reader, key| match key {
            "dmdEnvVar" => {
                variable = Some(match reader.value(2)? {
                    ValueKind::Text(text) => Some(text),
                    ValueKind::Null => None,
                    _ => return Err(wrong("invocation.dmdEnvVar", "not a string or null")),
                });
                Ok(())
            }
            "mode" => {
                mode = Some(match reader.value(2)? {
                    ValueKind::Text(text) => {
                        Mode::named(&text).ok_or_else(|| AnalyzeError::UnknownMode(quoted(&text)))?
                    }
                    _ => return Err(wrong("invocation.mode", "not a string")),
                });
                Ok(())
            }
            "sampleBytes" => {
                let bytes = reader.count(2, || "invocation.sampleBytes".to_owned())?;
                if !(1..=LARGEST_MEAN).contains(&bytes) {
                    return Err(wrong(
                        "invocation.sampleBytes",
                        format!("{bytes} is not between 1 and {LARGEST_MEAN}"),
                    ));
                }
                sample_bytes = Some(bytes);
                Ok(())
            }
            _ => reader.skip(2),
        })?;
        self.invocation = Some(InvocationMembers {
            variable: variable.ok_or_else(|| missing("invocation.dmdEnvVar"))?,
            mode: mode.ok_or_else(|| missing("invocation.mode"))?,
            sample_bytes,
        });
        Ok(())
    }

    /// Reads the array `modules`, which Firefox's dumps do not have. The reader skips elements and members of another
    /// type.
    fn modules(&mut self) -> Result<(), AnalyzeError> {
        let mut modules = Vec::new();
        self.elements("modules", &mut |reader, _| {
            if !reader.next_is(b'{')? {
                return reader.skip(2);
            }
            let mut module = LoadedModule::default();
            reader.members("modules[]", &mut |reader, key| {
                let field = match key {
                    "path" | "name" => &mut module.path,
                    "buildId" => &mut module.build_id,
                    "bias" => {
                        if let ValueKind::Text(text) = reader.value(3)? {
                            module.bias = u64::from_str_radix(&text, 16).ok();
                        }
                        return Ok(());
                    }
                    _ => return reader.skip(3),
                };
                if let ValueKind::Text(text) = reader.value(3)? {
                    *field = text;
                }
                Ok(())
            })?;
            modules.push(module);
            reader.check_count(modules.len())
        })?;
        self.modules = Some(modules);
        Ok(())
    }

    /// Reads the array `reportPaths`, which Firefox's dumps do not have. An element of another type becomes an empty
    /// reporter, so that the numbers of the other reporters stay valid.
    fn reporters(&mut self) -> Result<(), AnalyzeError> {
        let mut reporters = Vec::new();
        self.elements("reportPaths", &mut |reader, _| {
            let mut reporter = ReporterAmounts::default();
            if reader.next_is(b'{')? {
                reader.members("reportPaths[]", &mut |reader, key| {
                    let bytes = match key {
                        "path" => {
                            if let ValueKind::Text(text) = reader.value(3)? {
                                reporter.path = text;
                            }
                            return Ok(());
                        }
                        "claimed" => &mut reporter.claimed,
                        "marked" => &mut reporter.marked,
                        _ => return reader.skip(3),
                    };
                    if let ValueKind::Number(number) = reader.value(3)? {
                        *bytes = number.parse().unwrap_or_default();
                    }
                    Ok(())
                })?;
            } else {
                reader.skip(2)?;
            }
            reporters.push(reporter);
            reader.check_count(reporters.len())
        })?;
        self.reporters = reporters;
        Ok(())
    }

    /// Reads `process`, a key that Firefox's dumps do not have. The reader skips values of another type.
    fn process(&mut self) -> Result<(), AnalyzeError> {
        if !self.next_is(b'{')? {
            return self.skip(1);
        }
        self.members("process", &mut |reader, key| {
            if !matches!(key, "time" | "pid" | "residentPeak") {
                return reader.skip(2);
            }
            if let ValueKind::Number(number) = reader.value(2)? {
                let number = number.parse().ok();
                match key {
                    "time" => reader.time = number,
                    "pid" => reader.process = number,
                    _ => reader.resident_peak = number,
                }
            }
            Ok(())
        })
    }

    /// Reads `blackBox`, a key that only dumps of a black box have. The reader skips values of another type.
    fn black_box(&mut self) -> Result<(), AnalyzeError> {
        if !self.next_is(b'{')? {
            return self.skip(1);
        }
        let mut facts = BlackBoxDump::default();
        self.members("blackBox", &mut |reader, key| {
            match (key, reader.value(2)?) {
                ("reason", ValueKind::Text(text)) => facts.reason = text,
                ("bound", ValueKind::Text(text)) => facts.bound = shorten(&text).into_owned(),
                (_, ValueKind::Number(number)) => {
                    let number = number.parse().unwrap_or_default();
                    match key {
                        "limit" => facts.limit = number,
                        "used" => facts.used = number,
                        "rate" => facts.rate = number,
                        "milliseconds" => facts.milliseconds = number,
                        _ => {}
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        self.black_box = Some(facts);
        Ok(())
    }

    /// Reads `measurements`, a key that Firefox's dumps do not have. The reader skips values of another type.
    fn measurements(&mut self) -> Result<(), AnalyzeError> {
        if !self.next_is(b'{')? {
            return self.skip(1);
        }
        self.members("measurements", &mut |reader, key| {
            let ValueKind::Number(number) = reader.value(2)? else { return Ok(()) };
            if let Some(size) = reader.measurements.size(key) {
                *size = number.parse().ok();
            }
            Ok(())
        })
    }

    /// Reads the members of an object; `each` reads the value of a key.
    fn members(
        &mut self,
        place: &str,
        each: &mut dyn FnMut(&mut Self, &str) -> Result<(), AnalyzeError>,
    ) -> Result<(), AnalyzeError> {
        self.entries(place, &mut |reader| {
            let key = reader.window.take(|scan| {
                let key = scan.string()?.into_owned();
                scan.expect(b':', "`:`")?;
                Ok(key)
            })?;
            reader.blanks()?;
            each(reader, &key)
        })
    }

    /// Reads the members of an object that may be large; `each` reads a key and its value.
    fn entries(
        &mut self,
        place: &str,
        each: &mut dyn FnMut(&mut Self) -> Result<(), AnalyzeError>,
    ) -> Result<(), AnalyzeError> {
        if !self.next_is(b'{')? {
            return Err(wrong(place, "not an object"));
        }
        self.window.take(|scan| scan.expect(b'{', "`{`"))?;
        self.sequence(b'}', "`,` or `}`", each)
    }

    /// Reads the elements of an array; `each` reads one element.
    fn elements(
        &mut self,
        place: &str,
        each: &mut dyn FnMut(&mut Self, usize) -> Result<(), AnalyzeError>,
    ) -> Result<(), AnalyzeError> {
        if !self.next_is(b'[')? {
            return Err(wrong(place, "not an array"));
        }
        self.window.take(|scan| scan.expect(b'[', "`[`"))?;
        let mut indices = 0..;
        self.sequence(b']', "`,` or `]`", &mut |reader| {
            indices.next().map_or(Ok(()), |index| each(reader, index))
        })
    }

    /// Reads the parts of an object or an array until its end.
    fn sequence(
        &mut self,
        end: u8,
        expected: &'static str,
        each: &mut dyn FnMut(&mut Self) -> Result<(), AnalyzeError>,
    ) -> Result<(), AnalyzeError> {
        if self.blanks_then(end)? {
            return Ok(());
        }
        loop {
            self.blanks()?;
            each(self)?;
            if !self.blanks_then(b',')? {
                return Ok(self.window.take(|scan| scan.expect(end, expected))?);
            }
        }
    }

    /// Reads a value. Skips a nested value, and returns [`ValueKind::Nested`].
    fn value(&mut self, depth: u32) -> Result<ValueKind<String>, AnalyzeError> {
        if self.next_is(b'{')? || self.next_is(b'[')? {
            self.skip(depth)?;
            return Ok(ValueKind::Nested);
        }
        Ok(self.window.take(|scan| Ok(ValueKind::take(scan, depth)?.into_owned()))?)
    }

    /// Reads a value as text for a message, shortened if it is long.
    fn written(&mut self, depth: u32) -> Result<String, AnalyzeError> {
        Ok(match self.value(depth)? {
            ValueKind::Text(text) => quoted(&text),
            ValueKind::Number(number) => shorten(&number).into_owned(),
            ValueKind::Null => "null".to_owned(),
            ValueKind::Truth(true) => "true".to_owned(),
            ValueKind::Truth(false) => "false".to_owned(),
            ValueKind::Nested => "of another type".to_owned(),
        })
    }

    fn next_is(&mut self, byte: u8) -> Result<bool, AnalyzeError> {
        Ok(self.window.take(|scan| Ok(scan.peek()? == byte))?)
    }

    /// Skips blanks of any length.
    fn blanks(&mut self) -> Result<(), AnalyzeError> {
        Ok(self.window.stream(|scan| scan.at_end().map(drop))?)
    }

    /// Skips blanks, and then `byte` if it is next. Returns whether it skipped `byte`.
    fn blanks_then(&mut self, byte: u8) -> Result<bool, AnalyzeError> {
        self.blanks()?;
        Ok(self.window.take(|scan| scan.eat(byte))?)
    }

    /// Skips a value of any size.
    fn skip(&mut self, depth: u32) -> Result<(), AnalyzeError> {
        let mut skip = ValueSkip::new(depth);
        Ok(self.window.stream(|scan| skip.run(scan))?)
    }

    fn end(&mut self) -> Result<(), AnalyzeError> {
        self.blanks()?;
        Ok(self.window.take(|scan| if scan.at_end()? { Ok(()) } else { scan.expected("the end") })?)
    }

    fn check_count(&self, more: usize) -> Result<(), AnalyzeError> {
        let entries = more
            + 2 * (self.trace_keys.len() + self.frame_keys.len())
            + (self.calls.len() + self.words.len()) / 8;
        if entries > self.options.max_entries {
            return Err(AnalyzeError::TooManyEntries(self.options.max_entries));
        }
        Ok(())
    }
}

fn wrong(place: impl Into<String>, how: impl Into<String>) -> AnalyzeError {
    AnalyzeError::Wrong(place.into(), how.into())
}

fn missing(place: impl Into<String>) -> AnalyzeError {
    AnalyzeError::Missing(place.into())
}

fn quoted(text: &str) -> String {
    format!("'{}'", shorten(text))
}
