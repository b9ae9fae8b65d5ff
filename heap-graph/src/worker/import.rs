//! Files from elsewhere.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

use super::{Answer, Watched, WorkerError};
use crate::progress::Progress;
use crate::snapshot::open;
use crate::whole_file::write_whole;

/// Copies a file. The copy is whole or not there.
pub(super) fn import(from: &Path, to: &Path, progress: &Progress) -> Answer<()> {
    let (file, length) = open(from).map_err(WorkerError::Snapshot)?;
    if fs::metadata(to).is_ok_and(|there| is_same(&file, &there)) {
        let same = io::Error::new(io::ErrorKind::InvalidInput, "it is the file to be imported");
        return Err(WorkerError::Save(same));
    }
    progress.expect(length);
    let mut file = Watched { file, progress: progress.clone() };
    let copied = write_whole(to, |mut copy| io::copy(&mut file, &mut copy));
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

/// Elsewhere the copy takes the file's place once it is whole, which does no harm either.
#[cfg(not(unix))]
fn is_same(_: &File, _: &Metadata) -> bool {
    false
}
