//! On this system no process is copied.

use core::sync::atomic::AtomicPtr;

/// Null: no process is a copy.
pub(crate) static THREADS: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// No code makes one.
pub(crate) enum ThreadTable {}

impl ThreadTable {
    pub(crate) fn add(&mut self, _thread: usize, _frames: impl ExactSizeIterator<Item = [usize; 3]>) {
        match *self {}
    }
}
