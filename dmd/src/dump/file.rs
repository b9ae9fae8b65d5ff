//! The files of dumps and recordings.

#[cfg(target_os = "linux")]
mod of_recording;
#[cfg(unix)]
mod unfinished;
#[cfg(windows)]
#[path = "file/unfinished_windows.rs"]
mod unfinished;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use memory_report::new_file::{Destination, NewFile, Readers};

use crate::system::process::{DumpOutput, NumberedNames};
#[cfg(target_os = "linux")]
use crate::system::session_peer::SessionPeer;
#[cfg(target_os = "linux")]
pub(crate) use of_recording::{open_again, open_recording, open_requested};
use unfinished::UnfinishedFile;
#[cfg(engine = "native")]
pub(crate) use unfinished::remove as remove_unfinished;

/// The maximum number of names for processes with the same process number. Further processes overwrite each other's
/// dumps.
const MOST_OF_A_NUMBER: u32 = 10_000;

/// The file of a dump. The file gets its name when the dump is complete. Only this user may read it, since it contains
/// memory of the program.
pub(super) struct DumpFile<'o> {
    pub(super) path: PathBuf,
    target: DumpTarget<'o>,
}

enum DumpTarget<'o> {
    /// A pipe, a device or a similar file.
    Stream(File),
    #[cfg(target_os = "linux")]
    Peer(&'o SessionPeer),
    /// The dump replaces the file at `path`, if there is one.
    Named(UnfinishedFile),
    /// The dump gets the name with the number `which`, or the next name that no file has.
    Numbered { file: UnfinishedFile, names: &'o NumberedNames, which: u32 },
}

/// Opens the file for writing. The error contains the name.
pub(super) fn open(output: &DumpOutput) -> Result<DumpFile<'_>, (PathBuf, io::Error)> {
    match output {
        DumpOutput::At(path) => open_at(path.clone()),
        DumpOutput::Numbered(names) => open_numbered(names),
        #[cfg(target_os = "linux")]
        DumpOutput::Peer(peer) => {
            Ok(DumpFile { path: PathBuf::from("peer.json.gz"), target: DumpTarget::Peer(peer) })
        }
    }
}

fn open_at(path: PathBuf) -> Result<DumpFile<'static>, (PathBuf, io::Error)> {
    let target = Destination::at_path(&path).and_then(|destination| match destination {
        Destination::Stream(path) => open_stream(&path).map(DumpTarget::Stream),
        Destination::File(path) => create(&path).map(DumpTarget::Named),
    });
    match target {
        Ok(target) => Ok(DumpFile { path, target }),
        Err(error) => Err((path, error)),
    }
}

/// Opens a file with a numbered name. A process overwrites its own dumps. It overwrites a dump of another process only
/// if all [`MOST_OF_A_NUMBER`] names are taken.
fn open_numbered(names: &NumberedNames) -> Result<DumpFile<'_>, (PathBuf, io::Error)> {
    if let Some(which) = names.taken() {
        return open_at(names.name(which));
    }
    let which = (0..MOST_OF_A_NUMBER).find(|which| fs::symlink_metadata(names.name(*which)).is_err());
    let Some(which) = which else { return open_at(names.name(MOST_OF_A_NUMBER)) };
    let path = names.name(which);
    match create(&path) {
        Ok(file) => Ok(DumpFile { path, target: DumpTarget::Numbered { file, names, which } }),
        Err(error) => Err((path, error)),
    }
}

fn create(path: &Path) -> io::Result<UnfinishedFile> {
    NewFile::create(path, Readers::User).map(UnfinishedFile::new)
}

impl DumpFile<'_> {
    pub(super) fn writer(&mut self) -> &mut dyn Write {
        match &mut self.target {
            DumpTarget::Stream(file) => file,
            #[cfg(target_os = "linux")]
            DumpTarget::Peer(peer) => peer,
            DumpTarget::Named(file) | DumpTarget::Numbered { file, .. } => file.file(),
        }
    }

    /// Gives the file its name, and returns the name.
    pub(super) fn finish(mut self) -> io::Result<PathBuf> {
        match &mut self.target {
            DumpTarget::Stream(_) => {}
            #[cfg(target_os = "linux")]
            DumpTarget::Peer(peer) => peer.hang_up(),
            DumpTarget::Named(file) => file.finish()?,
            DumpTarget::Numbered { file, names, which } => {
                while let Err(error) = file.finish_new(&self.path) {
                    if error.kind() != io::ErrorKind::AlreadyExists || *which >= MOST_OF_A_NUMBER {
                        return Err(error);
                    }
                    *which += 1;
                    self.path = names.name(*which);
                }
                names.take(*which);
            }
        }
        Ok(self.path)
    }
}

/// Opens a pipe, a device or a similar file. Opening a pipe without a reader fails at once.
#[cfg(unix)]
fn open_stream(path: &Path) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    let file = OpenOptions::new().write(true).truncate(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    // SAFETY: `fcntl` reads flags of a descriptor that `file` keeps open.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    // SAFETY: `fcntl` sets flags of a descriptor that `file` keeps open.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) };
    Ok(file)
}

#[cfg(windows)]
fn open_stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).truncate(true).open(path)
}
