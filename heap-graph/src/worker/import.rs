//! Copies of snapshots from other places.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

use memory_report::new_file::{self, Readers};

use super::{Answer, Watched, WorkerError};
use crate::progress::Progress;
use crate::snapshot::open;

/// Copies a file. An error leaves no partial copy.
pub(super) fn import(from: &Path, to: &Path, progress: &Progress) -> Answer<()> {
    let (file, length) = open(from).map_err(WorkerError::Snapshot)?;
    if fs::metadata(to).is_ok_and(|there| is_same(&file, &there)) {
        let same = io::Error::new(io::ErrorKind::InvalidInput, "it is the imported file itself");
        return Err(WorkerError::Save(same));
    }
    progress.expect(length);
    let mut file = Watched { file, progress: progress.clone() };
    let copied = new_file::write(to, Readers::User, |copy| io::copy(&mut file, copy));
    copied.map(drop).map_err(|error| match progress.is_cancelled() {
        true => WorkerError::Cancelled,
        false => WorkerError::Save(error),
    })
}

#[cfg(unix)]
fn is_same(file: &File, there: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    file.metadata().is_ok_and(|here| (here.dev(), here.ino()) == (there.dev(), there.ino()))
}

/// On systems other than Unix the whole copy replaces the file, which does no harm.
#[cfg(not(unix))]
fn is_same(_: &File, _: &Metadata) -> bool {
    false
}
