//! Dumps of DMD, where an engine records this process.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{bridge, platform};

use super::serve;

/// The name of the request.
pub(super) const REQUEST: &str = "dmd-dump";

/// Sends a dump: all reporters are run, and what they reported is marked.
pub(super) fn answer(out: &mut dyn Write) -> io::Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("dmd-{}-{number}.json.gz", std::process::id());
    let file = Temporary(std::path::absolute(std::env::temp_dir().join(name))?);
    platform::create_private_file(&file.0)?;
    let result = write(&file.0).and_then(|()| File::open(&file.0));
    let mut dump = result?;
    // Whatever becomes of the peer, nothing is left behind.
    drop(file);
    io::copy(&mut dump, out)?;
    Ok(())
}

struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nobody waits to hear of it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Saves a dump if there is an engine: to `path`, which has another name until it is whole.
pub(super) fn save(incomplete: &Path, path: &Path) -> io::Result<()> {
    if !bridge::is_connected() {
        return Ok(());
    }
    platform::create_private_file(incomplete)?;
    let written = write(incomplete).and_then(|()| fs::rename(incomplete, path));
    if written.is_err() {
        let _ = fs::remove_file(incomplete);
    }
    written
}

fn write(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    serve::alone(|| bridge::report_and_dump(&path, serve::DEADLINE))
}
