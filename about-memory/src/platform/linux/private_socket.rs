//! A Unix socket that only this user can connect to, with the same functions as a TCP listener.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// How many times a server tries to give its socket the path.
const LOOKS: usize = 8;

/// A socket with the mode 0600. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct PrivateSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Identifies the socket's file.
    file: FileId,
}

impl PrivateSocket {
    /// Creates the socket at `path`. Replaces the socket of a program that has ended.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        // Clients cannot connect to a path that is longer than an address allows.
        SocketAddr::from_pathname(path).map_err(|_| long(path))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // A socket gets its mode only after it is created. Until then, it is in a private folder.
        let mut private = tempfile::Builder::new();
        private.prefix(".am").rand_bytes(4).permissions(Permissions::from_mode(0o700));
        let folder = private.tempdir_in(parent.unwrap_or(Path::new(".")))?;
        // The path inside this folder may be too long for an address even if the socket's path is short enough. The
        // path through the open folder is short.
        let open = File::open(folder.path())?;
        let inside = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        let first = inside.join("s");
        let listener = UnixListener::bind(&first)?;
        fs::set_permissions(&first, Permissions::from_mode(0o600))?;
        let file = FileId::new(&fs::symlink_metadata(&first)?);
        publish(&first, path, &inside.join("left"))?;
        Ok(Self { listener, path: path.to_owned(), file })
    }

    /// Accepts the next connection. The returned type is TCP's, because the system's calls are the same.
    pub(crate) fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.listener.accept()?;
        Ok(TcpStream::from(OwnedFd::from(stream)))
    }

    /// Ends all pending `accept` calls, even if another file is at the path now.
    pub(crate) fn wake(&self) {
        super::end_accept(&self.listener);
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|there| FileId::new(&there) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Identifies a file of the system.
#[derive(Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn new(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }
}

/// Gives the socket `first` the name `path`. Never replaces a file or a listening server. An old socket is moved to
/// `aside` before it is checked again, so that only one of several starting servers gets the path.
fn publish(first: &Path, path: &Path, aside: &Path) -> io::Result<()> {
    for _ in 0..LOOKS {
        // Like a rename, but fails if the path exists. Works on all file systems that have sockets.
        match fs::hard_link(first, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done,
        }
        if !is_left(path) {
            break;
        }
        match fs::rename(path, aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            moved => moved?,
        }
        if !is_left(aside) {
            // Another server has started at this path in the meantime, so its socket gets the path back.
            fs::hard_link(aside, path)?;
            break;
        }
    }
    let reason = "a file or a running server is at this path; remove it or choose another";
    Err(io::Error::new(io::ErrorKind::AlreadyExists, reason))
}

fn long(path: &Path) -> io::Error {
    let bytes = path.as_os_str().len();
    let reason =
        format!("the path has {bytes} bytes; the path of a socket has at most 107 bytes, none of them zero");
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// Whether there is a socket without a listener at the path.
fn is_left(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket
        && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}
