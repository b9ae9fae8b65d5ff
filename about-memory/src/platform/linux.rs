//! Linux: Unix sockets and `/proc`.

#[cfg(feature = "program")]
mod copy_listener;
#[cfg(feature = "http")]
mod private_socket;
#[cfg(feature = "program")]
mod program;
#[cfg(feature = "program")]
mod unpacked;

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
#[cfg(feature = "http")]
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use procfs::process::{ProcState, Process};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::{ConnectError, RunningProgram};

#[cfg(feature = "program")]
pub(crate) use copy_listener::{CopyConnection, CopyListener, wake_copy_listener};
#[cfg(feature = "http")]
pub(crate) use private_socket::PrivateSocket;
#[cfg(feature = "program")]
pub(crate) use program::{end_by_signal, end_like, ending_signal, is_executable, is_privileged, run_to_end};
#[cfg(feature = "program")]
pub(crate) use unpacked::{folders_for_unpacked, unpack};

/// Ends all pending `accept` calls of a socket, even if its address now leads to another socket.
#[cfg(feature = "http")]
pub(crate) fn end_accept(socket: &impl AsFd) {
    // A socket that does not listen has no pending `accept`.
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
}

/// The limit of a process's memory that its control groups set (`memory.max`), in bytes. `None` without a limit.
#[cfg(feature = "serve")]
pub(crate) fn memory_limit(pid: u32) -> Option<u64> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limit = |group: &Path| fs::read_to_string(Path::new("/sys/fs/cgroup").join(group).join("memory.max"));
    let limits = Path::new(group).ancestors().filter_map(|group| limit(group).ok()?.trim().parse().ok());
    limits.min()
}

/// A connection whose reads and writes fail after a point in time.
#[derive(Debug)]
pub(crate) struct DeadlineStream {
    stream: UnixStream,
    until: Instant,
}

impl DeadlineStream {
    /// Connects to the socket at `path`. Fails unless the socket and its process belong to this user.
    pub(crate) fn connect(path: &Path, until: Instant) -> Result<Self, ConnectError> {
        let uid = rustix::process::geteuid().as_raw();
        let found = fs::symlink_metadata(path).map_err(ConnectError::Io)?;
        if !found.file_type().is_socket() || found.uid() != uid {
            return Err(ConnectError::Foreign);
        }
        // A blocking connect could wait forever.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        if rustix::net::sockopt::socket_peercred(&socket)?.uid.as_raw() != uid {
            return Err(ConnectError::Foreign);
        }
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false).map_err(ConnectError::Io)?;
        Ok(Self { stream, until })
    }

    /// Sets the time at which reading and writing fail.
    pub(crate) fn allow(&mut self, until: Instant) {
        self.until = until;
    }

    fn left(&self) -> io::Result<Option<std::time::Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl From<rustix::io::Errno> for ConnectError {
    fn from(errno: rustix::io::Errno) -> Self {
        match errno {
            rustix::io::Errno::CONNREFUSED => Self::Refused,
            rustix::io::Errno::AGAIN => Self::Crowded,
            errno => Self::Io(errno.into()),
        }
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stream.set_read_timeout(self.left()?)?;
            match self.stream.read(into) {
                // The system does not restart a call that has a timeout.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.stream.set_write_timeout(self.left()?)?;
            match self.stream.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a file or a folder belongs to this user.
pub(crate) fn is_own(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// Locks a file until it is closed, if no other process has locked it.
pub(crate) fn try_lock(file: &File) -> bool {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Returns the name of a process; `None` if the process does not exist.
pub(crate) fn process_name(pid: u32) -> Option<String> {
    Some(Process::new(pid.try_into().ok()?).ok()?.stat().ok()?.comm)
}

/// Whether the process that started at this clock tick exists. An ended process exists until its parent has waited for
/// it.
pub(crate) fn is_running(pid: u32, start: u64) -> bool {
    let stat = || Process::new(pid.try_into().ok()?).ok()?.stat().ok();
    stat().is_some_and(|stat| stat.starttime == start)
}

/// Whether the process that started at this clock tick has ended, even if its parent has not waited for it.
pub(crate) fn has_ended(pid: u32, start: u64) -> bool {
    let stat = || Process::new(pid.try_into().ok()?).ok()?.stat().ok();
    stat().is_none_or(|stat| {
        // The first thread may end before the other threads of the process.
        let is_dead =
            matches!(stat.state(), Ok(ProcState::Zombie | ProcState::Dead)) && stat.num_threads <= 1;
        stat.starttime != start || is_dead
    })
}

/// Returns the file of the program that a process runs.
pub(crate) fn program_of(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// Returns the descendants of a process, sorted by process id. A descendant whose parent has ended is not found.
pub(crate) fn descendants(pid: u32) -> Vec<RunningProgram> {
    let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
    let mut left: Vec<_> = all
        .flatten()
        .filter_map(|process| process.stat().ok())
        .filter(|stat| !matches!(stat.state(), Ok(ProcState::Zombie | ProcState::Dead)))
        .filter_map(|stat| {
            let (pid, parent) = (u32::try_from(stat.pid).ok()?, u32::try_from(stat.ppid).ok()?);
            Some((parent, RunningProgram { pid, name: stat.comm }))
        })
        .collect();
    let mut found: Vec<RunningProgram> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        let (children, others) = left.into_iter().partition(|(of, _)| *of == parent);
        left = others;
        for (_, child) in children {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found.sort_by_key(|found| found.pid);
    found
}
