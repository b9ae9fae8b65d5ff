//! Sends and saves dumps of DMD, if an engine records this process.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::collect::{ForDump, for_dump};
use crate::reporting::isolation;
use crate::{engine_abi, platform};

use super::turns;

/// The name of the request.
pub(super) const REQUEST: &str = "dmd-dump";

/// The maximum time that an ending process waits until its dumps are sent.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// The upper half is the id of the process that sends dumps, and the lower half is the number of these dumps. The child
/// of a fork ignores its parent's number, since no thread of the child sends these dumps.
static SENDING: AtomicU64 = AtomicU64::new(0);
const PROCESS_SHIFT: u32 = 32;

/// A dump that is being written or sent, until this value is dropped.
struct SentDump;

impl SentDump {
    fn begin() -> Self {
        change_sending(|sending| sending + 1);
        Self
    }
}

impl Drop for SentDump {
    fn drop(&mut self) {
        change_sending(|sending| sending.saturating_sub(1));
    }
}

/// The number of dumps that this process is sending, from a value of [`SENDING`].
fn sending(word: u64) -> u64 {
    let process = u64::from(std::process::id());
    if word >> PROCESS_SHIFT == process { word & ((1 << PROCESS_SHIFT) - 1) } else { 0 }
}

fn change_sending(change: impl Fn(u64) -> u64) {
    let process = u64::from(std::process::id()) << PROCESS_SHIFT;
    let changed = |word| Some(process | change(sending(word)));
    // `changed` always returns a value, so the update cannot fail.
    let _ = SENDING.fetch_update(Ordering::AcqRel, Ordering::Acquire, changed);
}

/// Waits until all dumps are sent, for a bounded time: the process is about to end.
pub(super) fn finish() {
    let begun = Instant::now();
    // If a reporter ends the process, do not wait: the dump for which the reporter runs could not finish.
    while !isolation::is_reporting()
        && sending(SENDING.load(Ordering::Acquire)) > 0
        && begun.elapsed() < LONGEST_WAIT
    {
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Sends a dump. The engine first runs all reporters, and marks the blocks that they report.
pub(super) fn answer(out: &mut dyn Write) -> io::Result<()> {
    let _sent = SentDump::begin();
    let mut dump = dump(turns::DEADLINE, false)?;
    io::copy(&mut dump, out)?;
    Ok(())
}

/// Makes a dump. The engine first runs all reporters, each with this deadline, and marks the blocks that they report.
/// With `anonymize`, reporters leave private data out of paths. The error is `Unsupported` if no engine records. The
/// crate `memory-endpoint` calls this function.
pub fn dump(deadline: Duration, anonymize: bool) -> io::Result<File> {
    temporary(|path| report_and_dump(path, deadline, anonymize))
}

/// Calls `write` to write a dump to a temporary file, and opens the file. The file's name is removed before the peer
/// reads, so no file remains.
pub(super) fn temporary(write: impl FnOnce(&CStr) -> io::Result<()>) -> io::Result<File> {
    let folder = PrivateFolder::new(&std::path::absolute(std::env::temp_dir())?)?;
    let path = folder.0.join("dmd.json.gz");
    let name = CString::new(path.as_os_str().as_encoded_bytes())?;
    write(&name).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => {
            io::Error::new(io::ErrorKind::Unsupported, "DMD does not record this process now")
        }
        _ => error,
    })?;
    File::open(&path)
}

/// A folder that only this user can access. Its name is random, so no other user can create it first.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn new(parent: &Path) -> io::Result<Self> {
        let mut tries = 0;
        loop {
            let random = RandomState::new().hash_one(tries);
            let path = parent.join(format!("incomplete-dmd-{}-{random:016x}", std::process::id()));
            match platform::create_private_folder(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 100 => tries += 1,
                made => return made.map(|()| Self(path)),
            }
        }
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // There is no caller to return an error to.
        let _ = platform::remove_private_folder(&self.0);
    }
}

/// Saves a dump to a file in `folder`, if an engine records the process. The file appears when it is complete.
pub(super) fn save(folder: &Path, name: &str) -> io::Result<()> {
    if !engine_abi::is_running() {
        return Ok(());
    }
    let incomplete = PrivateFolder::new(folder)?;
    let path = incomplete.0.join(name);
    write(&path)?;
    fs::rename(path, folder.join(name))
}

fn write(path: &Path) -> io::Result<()> {
    report_and_dump(&CString::new(path.as_os_str().as_encoded_bytes())?, turns::DEADLINE, false)
}

fn report_and_dump(path: &CStr, deadline: Duration, anonymize: bool) -> io::Result<()> {
    let how = ForDump { ask_threads: Some(turns::time_for_threads(deadline)), anonymize };
    turns::alone(|| for_dump(how, || engine_abi::report_and_dump(path, deadline)))
}
