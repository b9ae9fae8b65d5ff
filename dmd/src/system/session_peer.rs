//! The peer of a session of tracking. If the process ends, or becomes another program, before the session ends, the
//! peer gets the dump that the session would have ended with. The process makes no file for this dump: the peer makes
//! the file with its own rights.
//!
//! A program may close every descriptor and open its own under the same numbers. So the descriptor has a high number,
//! and each use checks that it is still the same socket.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::fs::File;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;

use crate::system::errno::keeping_errno;

/// The descriptor; -1 while there is no session. The thread that swaps it for -1 owns it.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
/// The inode of the socket, as `fstat` returns it.
static SOCKET: AtomicU64 = AtomicU64::new(0);
/// The process that the session tracks. A child of a fork has a copy of these statics.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The lowest number for the descriptor: programs expect low numbers to be free.
const HIGH: c_int = 512;
/// The maximum time for which the end of the process waits for a peer that does not read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends the current session, if there is one, and starts a session with the peer at the other end of this socket. If
/// the number is below 0, the function only ends the current session. The caller keeps the descriptor. Returns 1 if
/// the new session has started or, for a number below 0, if a session has ended; otherwise 0.
pub(crate) extern "C" fn set(descriptor: c_int) -> c_int {
    keeping_errno(|| {
        let before = take();
        if descriptor < 0 {
            return c_int::from(before.is_some());
        }
        // SAFETY: `fcntl` duplicates an open descriptor, and fails for any other number.
        let own = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, HIGH) };
        if own < 0 {
            return 0;
        }
        // SAFETY: the descriptor is new, and this function owns it.
        let own = File::from(unsafe { OwnedFd::from_raw_fd(own) });
        SOCKET.store(own.metadata().map_or(0, |about| about.ino()), Ordering::Relaxed);
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        DESCRIPTOR.store(own.into_raw_fd(), Ordering::Release);
        1
    })
}

/// Whether a peer tracks this process.
pub(crate) fn is_there() -> bool {
    DESCRIPTOR.load(Ordering::Relaxed) >= 0 && PROCESS.load(Ordering::Relaxed) == std::process::id()
}

/// Takes the peer, if there is one. The session ends when the result is dropped.
pub(crate) fn take() -> Option<SessionPeer> {
    if !is_there() {
        return None;
    }
    let descriptor = DESCRIPTOR.swap(-1, Ordering::AcqRel);
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the exchange gave the descriptor only to this thread. It is the descriptor of `set`, or a file that the
    // program has opened under its number.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    let is_socket = file
        .metadata()
        .is_ok_and(|about| about.file_type().is_socket() && about.ino() == SOCKET.load(Ordering::Relaxed));
    if !is_socket {
        // The file belongs to the program.
        _ = file.into_raw_fd();
        return None;
    }
    Some(SessionPeer(UnixStream::from(OwnedFd::from(file))))
}

/// The connection to the peer.
#[derive(Debug)]
pub(crate) struct SessionPeer(UnixStream);

impl SessionPeer {
    /// Sets a time limit, after which a write fails if the peer does not read.
    pub(crate) fn set_patience(&self) {
        _ = self.0.set_write_timeout(Some(PATIENCE));
    }

    /// Ends the connection, even if child processes have copies of its descriptor.
    pub(crate) fn hang_up(&self) {
        _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Write for &SessionPeer {
    /// Sends bytes. If the peer has closed the connection, the call returns an error and sends no signal: the signal
    /// would end the program.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let start = bytes.as_ptr().cast();
        // SAFETY: the descriptor is open, and `bytes` is a valid slice.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), start, bytes.len(), libc::MSG_NOSIGNAL) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
