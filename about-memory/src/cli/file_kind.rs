//! What a file is that a command cannot read: the start of its contents tells, not its name.

use std::fs::File;
use std::path::Path;

use dmd_analyze::AnalyzeError;
use dmd_analyze::recording::Recording;
use heap_graph::snapshot::SnapshotError;
use memory_report::ReadError;
use memory_report::new_file::INCOMPLETE;
use memory_report::reader::TextSource;

/// The bytes that decide.
const START: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Report,
    Dump,
    Recording,
    Snapshot,
    Pprof,
    Page,
    Core,
    Program,
}

impl FileKind {
    /// Its name, and the command that reads it.
    fn describe(self) -> &'static str {
        match self {
            Self::Report => "a memory report; read it with: about-memory show",
            Self::Dump => "a dump of DMD; read it with: about-memory dmd",
            Self::Recording => "a recording of DMD; read it with: about-memory history",
            Self::Snapshot => "a heap snapshot; read it with: about-memory snapshot",
            Self::Pprof => "a pprof profile; compare it with: about-memory diff",
            Self::Page => "a page; open it in a browser",
            Self::Core => "a core file; read it with: about-memory types",
            Self::Program => "a program or a library",
        }
    }

    fn of(path: &Path) -> Option<Self> {
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
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
        Self::of_start(&start[..length])
    }

    /// By the first bytes, unpacked.
    fn of_start(start: &[u8]) -> Option<Self> {
        if Recording::is_start(start) {
            return Some(Self::Recording);
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
                () => None,
            };
        }
        // A snapshot starts with the length of its metadata, which starts with the field 1, a number. A profile starts with
        // the field 1, a message.
        match start {
            [1..=127, 0x08, ..] => Some(Self::Snapshot),
            [0x0a, ..] => Some(Self::Pprof),
            _ => None,
        }
    }
}

/// Says what the file is, if the error is that it is not what the command reads, or that it is not whole.
pub(super) fn note(name: &str, error: &anyhow::Error) -> Option<String> {
    let is_incomplete = |name: &str| name.starts_with(INCOMPLETE);
    if name.rsplit(std::path::is_separator).next().is_some_and(is_incomplete) && Path::new(name).exists() {
        return Some("the process that wrote it was ended before the file was whole".to_owned());
    }
    let wanted: &[FileKind] = match (
        error.downcast_ref::<ReadError>(),
        error.downcast_ref::<AnalyzeError>(),
        error.downcast_ref::<SnapshotError>(),
    ) {
        (Some(error), ..) if is_other_format(error) => &[FileKind::Report],
        (_, Some(AnalyzeError::Read(error)), _) if is_other_format(error) => {
            &[FileKind::Dump, FileKind::Recording]
        }
        (
            _,
            Some(
                AnalyzeError::NotADump
                | AnalyzeError::Missing(_)
                | AnalyzeError::Version(_)
                | AnalyzeError::Recording(_),
            ),
            _,
        ) => &[FileKind::Dump, FileKind::Recording],
        (.., Some(SnapshotError::NotCompressed | SnapshotError::Damaged(..) | SnapshotError::Message(_))) => {
            &[FileKind::Snapshot]
        }
        _ => return None,
    };
    let found = FileKind::of(Path::new(name)).filter(|kind| !wanted.contains(kind))?;
    Some(format!("it is {}", found.describe()))
}

/// Whether the contents are not those of a file of the format.
fn is_other_format(error: &ReadError) -> bool {
    matches!(
        error,
        ReadError::Version(_)
            | ReadError::Missing(_)
            | ReadError::NotJson(..)
            | ReadError::NotUtf8(_)
            | ReadError::NotAnObject
            | ReadError::WrongType(..)
    )
}
