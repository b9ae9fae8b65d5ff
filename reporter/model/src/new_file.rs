//! Files that get their final name when they are complete.
//!
//! Until then, a [`NewFile`] has a temporary name in the same folder: [`INCOMPLETE`] and random digits. The file is
//! created exclusively, so it is never a file or link that another user has put there. A user who creates a file with
//! the final name beforehand cannot read the new content. If the process is killed, the incomplete file remains, and
//! an older file keeps the final name.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The start of the name of an incomplete file.
pub const INCOMPLETE: &str = "incomplete-";

/// The users who may read a new file, on systems with file modes. On other systems the rights of the folder apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// This user only.
    User,
    /// All users that the process's umask allows.
    Umask,
}

/// A file with a temporary name until it is complete. Dropping it earlier removes the file.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// The temporary path; `None` after the file got its final name.
    incomplete: Option<PathBuf>,
    path: PathBuf,
}

impl NewFile {
    /// Creates a file that gets the name `path` later. A file or link with that name stays until
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// Returns an error if the path has no file name, or if the file cannot be created.
    pub fn create(path: &Path, readers: Readers) -> io::Result<Self> {
        const TRIES: usize = 100;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        let ending =
            name.find('.').filter(|dot| *dot > 0 && name.len() - dot < 32).map_or("", |dot| &name[dot..]);
        let mut tries = 0;
        loop {
            let (high, low) = (unusual(), unusual());
            let incomplete = path.with_file_name(format!("{INCOMPLETE}{high:016x}{low:016x}{ending}"));
            match create_exclusively(&incomplete, readers) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => tries += 1,
                created => {
                    return created.map(|file| Self {
                        file,
                        incomplete: Some(incomplete),
                        path: path.to_owned(),
                    });
                }
            }
        }
    }

    /// The file, for writing.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// The current path of the file: temporary, or final.
    pub fn incomplete(&self) -> &Path {
        self.incomplete.as_deref().unwrap_or(&self.path)
    }

    /// Gives the file its final name, and replaces a file or link of that name.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be renamed. For example, in a sticky folder such as `/tmp` a user cannot
    /// replace the file of another user.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(incomplete) = &self.incomplete {
            fs::rename(incomplete, &self.path)?;
            self.incomplete = None;
        }
        Ok(())
    }

    /// Gives the file the name `path`, in the same folder, unless a file of that name exists.
    ///
    /// # Errors
    ///
    /// Returns [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the name is taken; the caller may then try another
    /// name. Returns another error if the file cannot be renamed.
    pub fn finish_new(&mut self, path: &Path) -> io::Result<()> {
        let Some(incomplete) = &self.incomplete else { return Ok(()) };
        match fs::hard_link(incomplete, path) {
            Ok(()) => {
                // If the removal fails, the file keeps a second name: harmless.
                let _ = fs::remove_file(incomplete);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            // Some file systems have no hard links.
            Err(_) => {
                create_exclusively(path, Readers::User)?;
                fs::rename(incomplete, path)?;
            }
        }
        self.incomplete = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(incomplete) = &self.incomplete {
            // The caller already has the error that led here.
            let _ = fs::remove_file(incomplete);
        }
    }
}

/// The target of a write to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file or link to create or replace. It need not exist.
    File(PathBuf),
    /// A pipe, a device or an open file of a process; it is written directly.
    Stream(PathBuf),
}

impl Destination {
    /// Follows links, except another user's links in a folder where all users may create files.
    ///
    /// # Errors
    ///
    /// Returns an error if there are too many links, or if another user has created a pipe or a device in such a
    /// folder. That user must not receive the content.
    pub fn at_path(path: &Path) -> io::Result<Self> {
        const MOST_LINKS: usize = 40;
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let Ok(about) = fs::symlink_metadata(&path) else { return Ok(Self::File(path)) };
            if about.is_file() || about.is_dir() {
                return Ok(Self::File(path));
            }
            if is_process_s(&path) {
                return Ok(Self::Stream(path));
            }
            let others = is_of_others(&path, &about);
            match (about.is_symlink(), others) {
                (true, true) => return Ok(Self::File(path)),
                (true, false) => path = folder_of(&path).join(fs::read_link(&path)?),
                (false, true) => {
                    return Err(io::Error::new(
                        io::ErrorKind::PermissionDenied,
                        "it belongs to another user",
                    ));
                }
                (false, false) => return Ok(Self::Stream(path)),
            }
        }
        Err(io::Error::other("too many links"))
    }
}

/// Calls `write` with a new file, and gives the file its final name after `write` succeeds. An error or a panic of
/// `write` removes the file. A pipe or a device is written directly.
///
/// # Errors
///
/// Returns the error of `write`, or the error of creating or renaming the file.
pub fn write<T, E: From<io::Error>>(
    path: &Path,
    readers: Readers,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    match Destination::at_path(path)? {
        Destination::Stream(path) => write(&mut OpenOptions::new().write(true).truncate(true).open(path)?),
        Destination::File(path) => {
            let mut new = NewFile::create(&path, readers)?;
            let written = write(new.file())?;
            new.finish()?;
            Ok(written)
        }
    }
}

/// Whether the path is below `/proc`, which contains the open files of processes. `/dev/stdout` is a link into `/proc`.
fn is_process_s(path: &Path) -> bool {
    cfg!(unix) && fs::canonicalize(folder_of(path)).is_ok_and(|folder| folder.starts_with("/proc"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Whether a user other than this user and the folder's owner has created this path, in a folder such as `/tmp`: every
/// user may create files there, but may replace only their own files.
#[cfg(unix)]
fn is_of_others(path: &Path, about: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    const STICKY_AND_OPEN: u32 = 0o1002;
    let Ok(folder) = fs::metadata(folder_of(path)) else { return false };
    if folder.mode() & STICKY_AND_OPEN != STICKY_AND_OPEN || about.uid() == folder.uid() {
        return false;
    }
    // The owner of a new file is the current user.
    let own = NewFile::create(path, Readers::User).and_then(|new| new.file.metadata());
    own.is_ok_and(|own| own.uid() != about.uid())
}

#[cfg(not(unix))]
fn is_of_others(_: &Path, _: &Metadata) -> bool {
    false
}

#[cfg_attr(not(unix), allow(unused_variables, reason = "files have no mode"))]
fn create_exclusively(path: &Path, readers: Readers) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        let mode = match readers {
            Readers::User => 0o600,
            Readers::Umask => 0o666,
        };
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    }
    options.open(path)
}

/// A number that another process is unlikely to draw. A collision is harmless: a name that exists is not used. DMD's
/// engine calls this function during an allocation, so the number cannot come from a source with thread-local state.
fn unusual() -> u64 {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    let drawn = DRAWN.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    // The address of the stack differs from process to process.
    let place = core::ptr::from_ref(&drawn).addr() as u64;
    let mut bits = now ^ place.rotate_left(32) ^ u64::from(std::process::id()) << 40;
    bits = bits.wrapping_add(drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // The last steps of Vigna's SplitMix64.
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
