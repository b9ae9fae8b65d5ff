//! Processes, their environment, files and sockets. Most are handles of the operating system.

use std::{env, fs, net, process};

use crate::measure::impls::opaque::opaque;
use crate::measure::impls::plain::plain;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

plain!([] fs::File, [] fs::Metadata, [] fs::FileType, [] fs::Permissions, [] fs::OpenOptions);
plain!([] net::TcpStream, [] net::TcpListener, [] net::UdpSocket);
plain!(
    [] process::Child, [] process::ChildStdin, [] process::ChildStdout, [] process::ChildStderr,
    [] process::Stdio, [] process::ExitStatus, [] process::ExitCode,
);
opaque!(
    [] process::Command,
    [] env::Args,
    [] env::ArgsOs,
    [] env::Vars,
    [] env::VarsOs,
    [] fs::ReadDir,
    [] fs::DirEntry,
);

#[cfg(unix)]
plain!(
    [] std::os::fd::OwnedFd, [] std::os::fd::BorrowedFd<'_>, [] std::os::unix::net::UnixStream,
    [] std::os::unix::net::UnixListener, [] std::os::unix::net::UnixDatagram,
);

impl MallocSizeOf for process::Output {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        ops.field("stdout", &self.stdout) + ops.field("stderr", &self.stderr)
    }
}
