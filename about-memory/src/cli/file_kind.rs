//! The kind of a file, by the first bytes of its contents, and the message for a command that does not read this kind.

use std::fs::File;
use std::io;
use std::path::Path;

use dmd_analyze::recording::Recording;
use memory_export::pprof;
use memory_report::new_file::INCOMPLETE;
use memory_report::reader::TextSource;

/// The kind is detected in this many bytes at the start of a file.
const START: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Report,
    Dump,
    Recording,
    Snapshot,
    Pprof,
    HeapProfile,
    Core,
    Program,
    Page,
    Parquet,
    V8Snapshot,
}

impl FileKind {
    /// All kinds.
    pub(super) const ALL: &[Self] = &[
        Self::Report,
        Self::Dump,
        Self::Recording,
        Self::Snapshot,
        Self::Pprof,
        Self::HeapProfile,
        Self::Core,
        Self::Program,
        Self::Page,
        Self::Parquet,
        Self::V8Snapshot,
    ];

    /// The kinds that `show`, `serve` and `top` read.
    pub(super) const SHOWN: &[Self] = &[
        Self::Report,
        Self::Dump,
        Self::Recording,
        Self::Snapshot,
        Self::Pprof,
        Self::HeapProfile,
        Self::Core,
    ];

    /// Returns the name of the kind, with an article.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Report => "a memory report",
            Self::Dump => "a dump of DMD",
            Self::Recording => "a recording of DMD",
            Self::Snapshot => "a heap snapshot",
            Self::Pprof => "a pprof profile",
            Self::HeapProfile => "a heap profile of jemalloc or gperftools",
            Self::Core => "a core file",
            Self::Program => "a program or a library",
            Self::Page => "an HTML page",
            Self::Parquet => "a Parquet table",
            Self::V8Snapshot => "a heap snapshot of V8",
        }
    }

    /// Returns advice on reading a file of this kind.
    fn advice(self) -> &'static str {
        match self {
            Self::Report => "read it with: about-memory show",
            Self::Dump => "read it with: about-memory dmd",
            Self::Recording => "read it with: about-memory history",
            Self::Snapshot => "read it with: about-memory snapshot",
            Self::Pprof | Self::HeapProfile => "read it with: about-memory show",
            Self::Core => "read it with: about-memory heap types",
            Self::Program => "run it with: about-memory run -- PROGRAM",
            Self::Page => "open it in a browser",
            Self::Parquet => "read it with DuckDB or polars",
            Self::V8Snapshot => "read it with Chrome's developer tools",
        }
    }

    /// Returns the kind of a regular file. `None` for all other paths, and for unknown contents.
    pub(super) fn detect(path: &Path) -> Option<Self> {
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let mut packed = [0; 4];
        let read = io::Read::read(&mut File::open(path).ok()?, &mut packed);
        if read.is_ok_and(|read| packed[..read] == *b"PAR1") {
            return Some(Self::Parquet);
        }
        if is_pprof(path) {
            return Some(Self::Pprof);
        }
        let mut source = TextSource::open(File::open(path).ok()?).ok()?;
        let mut start = vec![0; START];
        let mut length = 0;
        while length < START {
            match source.read(&mut start[length..], length as u64) {
                Ok(0) | Err(_) => break,
                Ok(read) => length += read,
            }
        }
        Self::from_start(&start[..length])
    }

    /// Detects the kind by the first bytes, unpacked.
    fn from_start(start: &[u8]) -> Option<Self> {
        if Recording::is_start(start) {
            return Some(Self::Recording);
        }
        if dmd_analyze::profile::is_heap_profile(start) {
            return Some(Self::HeapProfile);
        }
        if start.starts_with(b"\x7fELF") {
            let is_core = start.get(16) == Some(&4);
            return Some(if is_core { Self::Core } else { Self::Program });
        }
        let text = start.trim_ascii_start();
        if text.get(..9).is_some_and(|tag| tag.eq_ignore_ascii_case(b"<!doctype")) {
            return Some(Self::Page);
        }
        let has = |key: &[u8]| text.windows(key.len()).any(|part| part == key);
        if text.starts_with(b"{") {
            return match () {
                () if has(b"\"blockList\"") || has(b"\"invocation\"") => Some(Self::Dump),
                () if has(b"\"reports\"") => Some(Self::Report),
                () if has(b"\"node_fields\"") => Some(Self::V8Snapshot),
                () => None,
            };
        }
        // A snapshot starts with the length of its metadata. The metadata starts with field 1, a number.
        match start {
            [1..=127, 0x08, ..] => Some(Self::Snapshot),
            _ => None,
        }
    }
}

/// Whether a file is a pprof profile. `false` if the file cannot be read: the command that reads it reports the error.
pub(super) fn is_pprof(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = Vec::new();
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut read = |path| File::open(path)?.take(512).read_to_end(&mut start);
    is_file && read(path).is_ok() && pprof::is_pprof(&start)
}

/// Returns the message that replaces the error if the command does not read files of this kind, or if the file is
/// incomplete. `None` if the caller must print the error itself.
pub(super) fn explain(name: &str, error: &anyhow::Error, takes: &[FileKind]) -> Option<String> {
    let is_incomplete = |name: &str| name.starts_with(INCOMPLETE);
    if name.rsplit(std::path::is_separator).next().is_some_and(is_incomplete) && Path::new(name).exists() {
        return Some(format!("{error}; the process that wrote it ended before the file was complete"));
    }
    // A text that the command itself wrote is more precise than the hint about the kind. A system error is not
    // caused by the kind of the file.
    if error.is::<String>() || error.is::<&'static str>() || error.is::<io::Error>() {
        return None;
    }
    let kind = FileKind::detect(Path::new(name)).filter(|kind| !takes.contains(kind))?;
    Some(format!("it is {}; {}", kind.name(), kind.advice()))
}
