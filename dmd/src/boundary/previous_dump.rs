//! The dump that the black box of another process has left.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dmd_format::kept_dump::KeptDumpName;
use memory_reporter::engine_abi::black_box_folder;

/// A dump that the [`BlackBox`](crate::BlackBox) of another process has left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreviousDump {
    /// The path of the file.
    pub path: PathBuf,
    /// The time of the dump.
    pub time: SystemTime,
    /// The bytes that counted towards the limit.
    pub used: u64,
    /// The number of the process.
    pub process: u32,
    /// The reason for the dump: `limit`, `predicted`, `growth`, `pressure` or `no-memory`.
    pub reason: &'static str,
    /// Whether the process was killed while it wrote the dump.
    pub is_partial: bool,
}

/// The newest dump that another process has written into the folder of this process's black box: an earlier process, or
/// a process that shares the folder. `None` if the folder has no such dump, or if this process has no black box.
///
/// A page about the health of a service can show it: the service was restarted because its memory ran out.
pub fn previous_dump() -> Option<PreviousDump> {
    let (folder, first) = black_box_folder()?;
    let entries = fs::read_dir(&folder).ok()?;
    let names = entries.flatten().filter_map(|entry| KeptDumpName::parse(entry.file_name().to_str()?));
    let name = KeptDumpName::previous(names, std::process::id(), first)?;
    Some(PreviousDump {
        path: Path::new(&folder).join(name.to_string()),
        time: UNIX_EPOCH + Duration::from_millis(name.milliseconds),
        used: name.bytes,
        process: name.process,
        reason: name.reason.name(),
        is_partial: name.is_partial,
    })
}
