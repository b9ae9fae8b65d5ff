//! A Unix socket that only this user can connect to, as a server of TCP has one.

use std::fs::{self, Permissions};
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A socket with the mode 0600. Its file goes when it is dropped.
#[derive(Debug)]
pub(crate) struct PrivateSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl PrivateSocket {
    /// Makes the socket at `path`, in place of one that a program left there which has ended.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // A socket has its mode only after it is made. Until then it is where nobody else can come.
        let mut private = tempfile::Builder::new();
        private.prefix(".am").rand_bytes(4).permissions(Permissions::from_mode(0o700));
        let folder = private.tempdir_in(parent.unwrap_or(Path::new(".")))?;
        let first = folder.path().join("s");
        let listener = UnixListener::bind(&first)?;
        fs::set_permissions(&first, Permissions::from_mode(0o600))?;
        if fs::symlink_metadata(path).is_ok() && !is_left(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(&first, path)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// The next connection. The system has the same calls for it as for one of TCP.
    pub(crate) fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.listener.accept()?;
        Ok(TcpStream::from(OwnedFd::from(stream)))
    }

    /// Ends one `accept`.
    pub(crate) fn wake(&self) {
        super::end_accept(&self.listener);
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the path has a socket on which nobody listens any more.
fn is_left(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket
        && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}
