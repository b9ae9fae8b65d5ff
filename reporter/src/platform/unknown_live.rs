//! Systems other than Linux: a process cannot listen there.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::{ListenError, SignalTrigger};

pub(crate) fn ignore_triggers() {}

pub(crate) fn start_time() -> Option<(u64, u64)> {
    None
}

pub(crate) fn runs_with_other_rights() -> bool {
    false
}

/// A listener that cannot start.
pub(crate) enum SocketListener {}

impl SocketListener {
    pub(crate) fn start(_: &Path, _: impl Fn(Peer) + Send + 'static) -> Result<Self, ListenError> {
        Err(ListenError::Unsupported)
    }
}

/// A peer that never connects.
pub(crate) enum Peer {}

impl Peer {
    pub(crate) fn allow(&mut self, _: Duration) {
        match *self {}
    }

    pub(crate) fn descriptor(&self) -> core::ffi::c_int {
        match *self {}
    }

    pub(crate) fn finish(self) {
        match self {}
    }
}

impl io::Read for Peer {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl io::Write for Peer {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}

pub(crate) fn socket_folder() -> Result<PathBuf, ListenError> {
    Err(ListenError::Unsupported)
}

pub(crate) fn make_private_folder(_: &Path) -> Result<(), ListenError> {
    Err(ListenError::Unsupported)
}

pub(crate) fn check_private_folder(_: &Path) -> Result<(), ListenError> {
    Err(ListenError::Unsupported)
}

pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

pub(crate) fn remove_private_folder(folder: &Path) -> io::Result<()> {
    std::fs::remove_dir_all(folder)
}

pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    File::create_new(path)
}

pub(crate) fn on_triggers(_: impl Fn(SignalTrigger) + Send + 'static) -> Result<(), ListenError> {
    Err(ListenError::Unsupported)
}

pub(crate) fn call_at_exit(_: fn()) {}

pub(crate) fn spawn_without_signals(name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// All threads are threads of the system.
pub(crate) fn is_hosted() -> bool {
    false
}

/// On Linux, a provider of threads for this crate. Unused on this system.
#[doc(hidden)]
#[derive(Debug)]
#[allow(missing_docs, reason = "as on Linux")]
pub struct ThreadHost {
    pub start: fn(Box<dyn FnOnce() + Send>) -> bool,
    pub wait: fn(i32, i16, Option<core::time::Duration>) -> bool,
    pub is_here: fn() -> bool,
}

/// Does nothing on this system.
#[doc(hidden)]
pub fn host_threads(_: &'static ThreadHost) {}
