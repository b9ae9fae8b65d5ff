//! A Unix socket that answers this user, the user that started the program, and root, on a thread of its own.
//!
//! After a fork the child has a copy of the listening socket, but not the thread. The child closes its copy, so that
//! nobody connects to a process that does not answer.
//!
//! A program may close every descriptor and open its own under the same numbers. So the socket has a high number, and
//! each use checks that it is still the same socket.

use core::mem::ManuallyDrop;
use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, FromRawFd as _, RawFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use crate::platform::ListenError;

use super::{is_hosted, own_uid, spawn_without_signals, thread_host};

/// The descriptor that the child of a fork closes; -1 for none.
static TO_CLOSE: AtomicI32 = AtomicI32::new(-1);

/// The file number of the socket with that descriptor.
static INODE: AtomicU64 = AtomicU64::new(0);

/// Keeps the listening thread running until it is dropped. A process has one at a time.
pub(crate) struct SocketListener(Arc<ListenerState>);

struct ListenerState {
    socket: ManuallyDrop<UnixListener>,
    inode: u64,
    pid: u32,
    /// The user that started to listen: the program may have become another one since.
    uid: u32,
    stopped: AtomicBool,
}

impl SocketListener {
    /// Answers at `path`. It calls `answer` on the listening thread, so `answer` must be quick.
    pub(crate) fn start(path: &Path, answer: impl Fn(Peer) + Send + 'static) -> Result<Self, ListenError> {
        let io = |error| ListenError::Io(path.to_owned(), error);
        let socket = out_of_the_way(bind(path).map_err(io)?);
        socket.set_nonblocking(is_hosted()).map_err(io)?;
        let inode = inode(socket.as_raw_fd());
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(io)?;
        close_in_children();
        INODE.store(inode, Ordering::SeqCst);
        TO_CLOSE.store(socket.as_raw_fd(), Ordering::SeqCst);
        let shared = Arc::new(ListenerState {
            socket: ManuallyDrop::new(socket),
            inode,
            pid: std::process::id(),
            uid: own_uid(),
            stopped: AtomicBool::new(false),
        });
        let listener = Self(Arc::clone(&shared));
        spawn_without_signals("about-memory", Box::new(move || shared.accept_all(answer)))
            .map_err(ListenError::Thread)?;
        Ok(listener)
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        // A process with this number and start time left it before the machine was last started.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && UnixStream::connect(path).is_err() => {
            fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        result => result,
    }
}

impl Drop for SocketListener {
    fn drop(&mut self) {
        if self.0.pid == std::process::id() {
            self.0.stopped.store(true, Ordering::SeqCst);
            if self.0.is_there() {
                wake(&self.0.socket);
            }
        }
    }
}

impl ListenerState {
    /// Whether the descriptor still is the socket's.
    fn is_there(&self) -> bool {
        inode(self.socket.as_raw_fd()) == self.inode
    }

    /// Whether a user may ask: the user of this process, the one who started it, and root, who can read its memory anyway.
    fn may_ask(&self, uid: u32) -> bool {
        const ROOT: u32 = 0;
        [ROOT, self.uid, own_uid()].contains(&uid)
    }

    fn accept_all(&self, answer: impl Fn(Peer)) {
        while !self.stopped.load(Ordering::SeqCst) && self.is_there() {
            // A wait of an engine thread may have gone on with a socket that the program opened under the number meanwhile.
            if !is_ready(self.socket.as_raw_fd(), libc::POLLIN, None) || !self.is_there() {
                continue;
            }
            match self.socket.accept() {
                Ok((stream, _)) => {
                    if peer_uid(&stream).is_some_and(|uid| self.may_ask(uid))
                        && stream.set_nonblocking(is_hosted()).is_ok()
                    {
                        answer(Peer { stream, until: Instant::now() });
                    }
                }
                // Perhaps too many files are open: to wait costs less than to try again at once.
                Err(_) if !self.stopped.load(Ordering::SeqCst) => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(_) => {}
            }
        }
    }
}

impl Drop for ListenerState {
    #[allow(unsafe_code, reason = "in a child of a fork the socket was closed behind its owner's back")]
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            // Unless another listener has started meanwhile. Its descriptor differs from this one, which is still open.
            let own = self.socket.as_raw_fd();
            let _ = TO_CLOSE.compare_exchange(own, -1, Ordering::SeqCst, Ordering::SeqCst);
            if self.is_there() {
                // SAFETY: only this destructor drops the socket, and nothing uses it afterwards.
                unsafe { ManuallyDrop::drop(&mut self.socket) };
            }
        }
    }
}

/// Waits until a descriptor is ready for these events of `poll`, if this thread is one of a host; other threads wait in the call
/// that follows. False if the time is up.
fn is_ready(descriptor: RawFd, events: libc::c_short, longest: Option<Duration>) -> bool {
    thread_host().is_none_or(|host| (host.wait)(descriptor, events, longest))
}

/// Programs expect low numbers to be free, and close them without a look.
const HIGH: i32 = 900;

/// The same socket under a high number, if the system has one left.
#[allow(unsafe_code, reason = "owns a new descriptor")]
fn out_of_the_way(socket: UnixListener) -> UnixListener {
    // SAFETY: `socket` owns an open descriptor.
    let high = unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) };
    if high < 0 {
        return socket;
    }
    // SAFETY: `fcntl` has just made the descriptor, so it has no other owner.
    unsafe { UnixListener::from_raw_fd(high) }
}

/// The number of a descriptor's file; 0 if it is closed. Signal handlers and children of a fork may call this.
#[allow(unsafe_code, reason = "asks the kernel")]
fn inode(descriptor: RawFd) -> u64 {
    let mut found = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `found` has room for the answer, and any number may be asked about.
    let failed = unsafe { libc::fstat(descriptor, found.as_mut_ptr()) } != 0;
    if failed {
        return 0;
    }
    // SAFETY: `fstat` has succeeded and filled it.
    unsafe { found.assume_init() }.st_ino
}

/// Ends a wait for peers.
#[allow(unsafe_code, reason = "asks the kernel")]
fn wake(socket: &UnixListener) {
    // SAFETY: `socket` owns an open descriptor.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

#[allow(unsafe_code, reason = "asks the C library")]
fn close_in_children() {
    extern "C" fn close() {
        let socket = TO_CLOSE.swap(-1, Ordering::SeqCst);
        if socket >= 0 && inode(socket) == INODE.load(Ordering::SeqCst) {
            // SAFETY: the descriptor is the child's copy; its owner, `ListenerState`, does not close it in a child.
            unsafe { libc::close(socket) };
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `close` only swaps an atomic and closes a descriptor, both of which are allowed in the child of a
        // fork.
        unsafe { libc::pthread_atfork(None, None, Some(close)) };
    });
}

#[allow(unsafe_code, reason = "asks the kernel")]
fn peer_uid(stream: &UnixStream) -> Option<u32> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    let to = (&raw mut found).cast();
    // SAFETY: `to` has room for `size` bytes, and `stream` owns an open descriptor.
    let failed = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, to, &raw mut size)
    };
    (failed == 0).then_some(found.uid)
}

/// A process of this user that sends a request. Reads and writes fail when its time is up.
pub(crate) struct Peer {
    stream: UnixStream,
    until: Instant,
}

impl Peer {
    /// From now on, reading and writing take at most this long all together.
    pub(crate) fn allow(&mut self, time: Duration) {
        self.until = Instant::now() + time;
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Says that there is nothing more to come.
    pub(crate) fn finish(self) {
        // A peer that has gone needs no farewell.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Peer {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.left()?;
        if !is_ready(self.stream.as_raw_fd(), libc::POLLIN, left) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(left)?;
        self.stream.read(into)
    }
}

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left()?;
        if !is_ready(self.stream.as_raw_fd(), libc::POLLOUT, left) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_write_timeout(left)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
