//! The socket of this process: its options and its path, and how it ends.

use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crate::platform::{self, ListenError};
use crate::process_lock::ProcessLock;

use super::dmd_dump;
use super::serve::LiveServer;

/// The options of [`listen_with`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenOptions {
    pub(super) name: Option<String>,
    folder: Option<PathBuf>,
}

impl ListenOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name of the process. Default: the name of the program's file.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the folder of the socket. For an engine that another process has loaded into this one: that process knows
    /// the folder, and this process's environment may be in use by another thread.
    #[doc(hidden)]
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }
}

/// The folder for the sockets of this user's processes: `about-memory` in `XDG_RUNTIME_DIR`, or otherwise
/// `/tmp/about-memory-<uid>`. It need not exist.
///
/// # Errors
///
/// Returns an error if the folder exists and other users can read it or replace it, or on systems other than Linux.
pub fn folder() -> Result<PathBuf, ListenError> {
    let folder = platform::socket_folder()?;
    match platform::check_private_folder(&folder) {
        Err(ListenError::Io(_, error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(folder),
        result => result.map(|()| folder),
    }
}

/// Answers requests of the program `about-memory` until this process ends. `about-memory` can then show the reports of
/// this process.
///
/// ```no_run
/// memory_reporter::listen()?;
/// # Ok::<(), memory_reporter::live::ListenError>(())
/// ```
///
/// A process has one socket: a second call, or a call after `ABOUT_MEMORY=listen`, shares this socket. To stop earlier,
/// call [`live::listen_until_dropped`](crate::live::listen_until_dropped) instead.
///
/// # Errors
///
/// Returns an error if the folder of sockets is not private to the user, if the socket or the thread cannot be created,
/// or on systems other than Linux. The process then does not listen. A program that continues should print the error.
pub fn listen() -> Result<(), ListenError> {
    listen_with(&ListenOptions::new())
}

/// Like [`listen`], but with options. If the process already listens, the options are ignored.
///
/// # Errors
///
/// Returns the same errors as [`listen`].
pub fn listen_with(options: &ListenOptions) -> Result<(), ListenError> {
    listen_until_dropped(options).map(ListenGuard::forever)
}

/// Like [`listen_with`], but the process listens only until the last value that this function returned is dropped.
///
/// # Errors
///
/// Returns the same errors as [`listen`].
pub fn listen_until_dropped(options: &ListenOptions) -> Result<ListenGuard, ListenError> {
    let mut current = CURRENT.lock();
    if let Some(shared) = current.upgrade()
        && shared.pid == std::process::id()
    {
        return Ok(ListenGuard(shared));
    }
    let shared = Arc::new(SharedListener::start(options)?);
    *current = Arc::downgrade(&shared);
    drop(current);
    platform::call_at_exit(at_exit);
    Ok(ListenGuard(shared))
}

/// Keeps the process listening. Dropping the last guard stops listening and removes the socket, unless the program
/// called [`listen`]. The end of the program also removes the socket.
#[must_use = "dropping this value stops listening; to listen until the program ends, call `listen`"]
#[derive(Clone)]
pub struct ListenGuard(Arc<SharedListener>);

impl ListenGuard {
    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Keeps the process listening until the program ends.
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl fmt::Debug for ListenGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ListenGuard").field(&self.0.path).finish()
    }
}

struct SharedListener {
    path: PathBuf,
    /// The process that created the socket. The child process of a fork must not remove the socket of its parent.
    pid: u32,
    _listener: platform::SocketListener,
}

impl SharedListener {
    fn start(options: &ListenOptions) -> Result<Self, ListenError> {
        let folder = options.folder.clone().map_or_else(platform::socket_folder, Ok)?;
        platform::make_private_folder(&folder)?;
        let (ticks, started) = platform::start_time().unwrap_or_default();
        let pid = std::process::id();
        let path = folder.join(format!("{pid}-{ticks}.sock"));
        let server = LiveServer::new(options.name.clone(), started);
        let listener = platform::SocketListener::start(&path, move |peer| server.answer(peer))?;
        Ok(Self { path, pid, _listener: listener })
    }

    fn remove_socket(&self) {
        if self.pid == std::process::id() {
            // The file may already be gone, and there is no caller to return an error to.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for SharedListener {
    fn drop(&mut self) {
        self.remove_socket();
    }
}

static CURRENT: ProcessLock<Weak<SharedListener>> = ProcessLock::new(Weak::new());

/// Removes the socket, and lets peers get the dumps that they wait for. The thread that ends the program calls this
/// function and may hold any lock, so the function does not wait for locks.
fn at_exit() {
    dmd_dump::finish();
    if let Some(current) = CURRENT.try_lock()
        && let Some(shared) = current.upgrade()
    {
        drop(current);
        shared.remove_socket();
    }
}
