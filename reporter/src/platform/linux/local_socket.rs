//! A Unix socket that answers this user, the user at the start of listening, and root. It has its own thread.
//!
//! After a fork, the child process has a copy of the listening socket, but not the thread. The child closes its copy,
//! so that no peer connects to a process that does not answer.
//!
//! A program may close every descriptor and open its own files with the same numbers. So the socket has a high
//! number, and each use checks that the number still refers to the same socket.

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

/// The descriptor that the child process of a fork closes; -1 for none.
static TO_CLOSE: AtomicI32 = AtomicI32::new(-1);

/// The inode number of the socket with the descriptor [`TO_CLOSE`].
static INODE: AtomicU64 = AtomicU64::new(0);

/// Keeps the listening thread running until this value is dropped. A process has at most one listener at a time.
pub(crate) struct SocketListener(Arc<ListenerState>);

struct ListenerState {
    socket: ManuallyDrop<UnixListener>,
    inode: u64,
    pid: u32,
    /// The user id when listening started. The program may have changed its user since.
    uid: u32,
    stopped: AtomicBool,
}

impl SocketListener {
    /// Listens at `path`. Calls `answer` on the listening thread, so `answer` must be quick.
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
        // An earlier process with this number and start time left the file, before the machine was last started.
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
    /// Whether the descriptor still refers to the socket.
    fn is_there(&self) -> bool {
        inode(self.socket.as_raw_fd()) == self.inode
    }

    /// Whether a user may send requests: the user of this process, its user when listening started, or root. Root can
    /// read the memory of the process anyway.
    fn may_ask(&self, uid: u32) -> bool {
        const ROOT: u32 = 0;
        [ROOT, self.uid, own_uid()].contains(&uid)
    }

    fn accept_all(&self, answer: impl Fn(Peer)) {
        while !self.stopped.load(Ordering::SeqCst) && self.is_there() {
            // The program may have opened another socket with this number meanwhile, and a thread of a host may
            // have waited for that socket.
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
                // Perhaps too many files are open. A pause costs less than an immediate retry.
                Err(_) if !self.stopped.load(Ordering::SeqCst) => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(_) => {}
            }
        }
    }
}

impl Drop for ListenerState {
    #[allow(unsafe_code, reason = "in the child of a fork the socket is already closed")]
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            // If another listener has started meanwhile, `TO_CLOSE` keeps the descriptor of that listener. It differs
            // from this descriptor, because this descriptor is still open.
            let own = self.socket.as_raw_fd();
            let _ = TO_CLOSE.compare_exchange(own, -1, Ordering::SeqCst, Ordering::SeqCst);
            if self.is_there() {
                // SAFETY: only this destructor drops the socket, and nothing uses it afterwards.
                unsafe { ManuallyDrop::drop(&mut self.socket) };
            }
        }
    }
}

/// Waits until a descriptor is ready for these events of `poll`, if this thread belongs to a host. Other threads wait
/// in the call that follows. False if the time is over.
fn is_ready(descriptor: RawFd, events: libc::c_short, longest: Option<Duration>) -> bool {
    thread_host().is_none_or(|host| (host.wait)(descriptor, events, longest))
}

/// From this number on, descriptors are unlikely to collide: programs expect low numbers to be free, and close them
/// blindly.
const HIGH: i32 = 900;

/// The same socket with a high descriptor, if a high number is free.
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

/// The inode number of a descriptor's file; 0 if it is closed. Safe in signal handlers and in the child process of a
/// fork.
#[allow(unsafe_code, reason = "calls the kernel")]
fn inode(descriptor: RawFd) -> u64 {
    let mut found = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `found` has room for the result, and every number is allowed.
    let failed = unsafe { libc::fstat(descriptor, found.as_mut_ptr()) } != 0;
    if failed {
        return 0;
    }
    // SAFETY: `fstat` has succeeded and filled `found`.
    unsafe { found.assume_init() }.st_ino
}

/// Makes the listening thread stop waiting for peers.
#[allow(unsafe_code, reason = "calls the kernel")]
fn wake(socket: &UnixListener) {
    // SAFETY: `socket` owns an open descriptor.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

#[allow(unsafe_code, reason = "calls the C library")]
fn close_in_children() {
    extern "C" fn close() {
        let socket = TO_CLOSE.swap(-1, Ordering::SeqCst);
        if socket >= 0 && inode(socket) == INODE.load(Ordering::SeqCst) {
            // SAFETY: the descriptor is the child's copy. Its owner, `ListenerState`, does not close it in a child
            // process.
            unsafe { libc::close(socket) };
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `close` only swaps an atomic and closes a descriptor. Both are allowed in the child process of a
        // fork.
        unsafe { libc::pthread_atfork(None, None, Some(close)) };
    });
}

#[allow(unsafe_code, reason = "calls the kernel")]
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

/// A connected process that sends a request. Reads and writes fail when its time is over.
pub(crate) struct Peer {
    stream: UnixStream,
    until: Instant,
}

impl Peer {
    /// Limits later reads and writes to this time in total.
    pub(crate) fn allow(&mut self, time: Duration) {
        self.until = Instant::now() + time;
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Ends the answer and closes the connection.
    pub(crate) fn finish(self) {
        // An error means that the peer is gone, so it needs no notice.
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
