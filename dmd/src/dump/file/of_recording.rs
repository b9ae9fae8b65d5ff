//! The files of recordings. A process keeps such a file open until the recording ends.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dmd_format::recording::{ChunkReader, RecordedProcess};
use memory_report::new_file::{Destination, NewFile, Readers};

use super::{MOST_OF_A_NUMBER, open_stream};
use crate::system::process::RecordingNames;

/// Opens a new file for a recording, and returns its name. The function leaves these files unchanged: the file of
/// another running process, the file of an earlier program of this process, and the first [`MOST_OF_A_NUMBER`] files
/// with numbers in their names.
pub(crate) fn open_recording(names: &RecordingNames) -> (PathBuf, io::Result<File>) {
    if let Some(path) = &names.plain {
        let file = open_plain(path, true);
        if !matches!(&file, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            return (path.clone(), file.map(out_of_the_way));
        }
    }
    for which in 0.. {
        let path = names.numbered.name(which);
        let file = if which < MOST_OF_A_NUMBER { create_new(&path) } else { open_plain(&path, false) };
        if !matches!(&file, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            return (path, file.map(out_of_the_way));
        }
    }
    (PathBuf::new(), Err(io::ErrorKind::AlreadyExists.into()))
}

/// Opens the file of a recording that a request asks for. The new file replaces an earlier file that no process
/// writes.
pub(crate) fn open_requested(path: &Path) -> io::Result<File> {
    match open_plain(path, false) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(io::Error::from_raw_os_error(libc::ETXTBSY))
        }
        file => file.map(out_of_the_way),
    }
}

/// Creates a file, or replaces a file that no other process writes. With `keeps`, it leaves a recording of this
/// process unchanged.
fn open_plain(path: &Path, keeps: bool) -> io::Result<File> {
    let path = &match Destination::at_path(path)? {
        Destination::Stream(path) => return open_stream(&path),
        Destination::File(path) => path,
    };
    const TRIES: usize = 100;
    for _ in 0..TRIES {
        match create_new(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            new => return new.inspect(|file| _ = lock(file)),
        }
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let there = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        if let Ok(there) = &there {
            if !lock(there) || (keeps && is_of_this_process(there)) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            // Another process may have created its recording at this path before this process had the lock.
            if !is_at(there, path) {
                continue;
            }
        }
        // The recording is not written into the old file, since another user may have written it or may read it. The
        // lock of the old file keeps other processes away until the new file has its name and a lock.
        let mut new = NewFile::create(path, Readers::User)?;
        lock(new.file());
        new.finish()?;
        return new.file().try_clone();
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Whether the path leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |about: Metadata| (about.dev(), about.ino());
    file.metadata().map(identity).ok() == fs::symlink_metadata(path).map(identity).ok()
}

/// Locks the file for this process, until the process closes it. Returns false if another process has the lock.
fn lock(file: &File) -> bool {
    // SAFETY: `flock` takes a descriptor that `file` keeps open.
    let failed = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0;
    // Not all file systems have locks.
    !failed || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock
}

/// Whether this process has written the recording before an `exec`.
fn is_of_this_process(file: &File) -> bool {
    let Ok(mut chunks) = ChunkReader::open(file) else { return false };
    let about =
        chunks.next().and_then(Result::ok).and_then(|chunk| RecordedProcess::decode(chunk.payload).ok());
    about.is_some_and(|about| about.process == u64::from(std::process::id()))
}

/// Opens the file of a recording whose descriptor the program has closed.
pub(crate) fn open_again(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path).map(out_of_the_way)
}

/// Gives the file a high descriptor, since programs rely on low descriptors being free.
fn out_of_the_way(file: File) -> File {
    const LARGE: libc::c_int = 512;
    // SAFETY: `fcntl` duplicates a descriptor that `file` keeps open.
    let large = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LARGE) };
    if large < 0 {
        return file;
    }
    // SAFETY: the descriptor is new, and only this function owns it.
    unsafe { File::from_raw_fd(large) }
}
