//! The files of recordings, which a process keeps open until it ends.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use memory_report::dmd::recording::{About, Chunks};

use super::{MOST_OF_A_NUMBER, open_at};
use crate::system::process::RecordingNames;

/// Opens a new file for a recording, and returns its name. The file of another process that runs, of an earlier program
/// of this process, and any file with a number in its name stay as they are.
pub(crate) fn open_recording(names: &RecordingNames) -> (PathBuf, io::Result<File>) {
    if let Some(path) = &names.plain {
        let file = open_plain(path, true);
        if !matches!(&file, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            return (path.clone(), file.map(out_of_the_way));
        }
    }
    for which in 0.. {
        let path = names.numbered.name(which);
        let file = open_at(&path, which < MOST_OF_A_NUMBER);
        if !matches!(&file, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            return (path, file.map(out_of_the_way));
        }
    }
    (PathBuf::new(), Err(io::ErrorKind::AlreadyExists.into()))
}

/// Opens the file of a recording that a request asks for. It takes the place of an earlier file, which no process writes.
pub(crate) fn open_requested(path: &Path) -> io::Result<File> {
    match open_plain(path, false) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(io::Error::from_raw_os_error(libc::ETXTBSY))
        }
        file => file.map(out_of_the_way),
    }
}

/// Opens a file that nobody else writes, and empties it. With `keeps`, a recording of this process stays as it is.
fn open_plain(path: &Path, keeps: bool) -> io::Result<File> {
    match open_at(path, true) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        new => return new.inspect(|file| _ = lock(file)),
    }
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path);
    // A pipe cannot be read and written.
    let Ok(file) = file else { return open_at(path, false) };
    if !file.metadata()?.is_file() {
        return open_at(path, false);
    }
    if !lock(&file) || (keeps && is_of_this_process(&file)) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    file.set_len(0)?;
    let _ = file.set_permissions(Permissions::from_mode(0o600));
    (&file).rewind()?;
    Ok(file)
}

/// Takes the file for this process, until it closes it. False if another process has it.
fn lock(file: &File) -> bool {
    // SAFETY: `flock` takes a descriptor that `file` keeps open.
    let failed = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0;
    // Not all file systems have locks.
    !failed || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock
}

/// Whether a program that this process was before has written the recording.
fn is_of_this_process(file: &File) -> bool {
    let Ok(mut chunks) = Chunks::open(file) else { return false };
    let about = chunks.next().and_then(Result::ok).and_then(|chunk| About::decode(chunk.payload).ok());
    about.is_some_and(|about| about.process == u64::from(std::process::id()))
}

/// Opens the file of a recording whose descriptor the program has closed.
pub(crate) fn open_again(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path).map(out_of_the_way)
}

/// Gives the file a large descriptor: programs count on the smallest ones.
fn out_of_the_way(file: File) -> File {
    const LARGE: libc::c_int = 512;
    // SAFETY: `fcntl` duplicates a descriptor that `file` keeps open.
    let large = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LARGE) };
    if large < 0 {
        return file;
    }
    // SAFETY: a fresh descriptor, which nobody else has.
    unsafe { File::from_raw_fd(large) }
}
