//! Processes cannot be copied on this system.

use core::sync::atomic::AtomicPtr;

/// Always null, since this process is not a copy.
pub(crate) static THREADS: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Never made.
pub(crate) enum ThreadTable {}

impl ThreadTable {
    pub(crate) fn add(&mut self, _thread: usize, _frames: impl ExactSizeIterator<Item = [usize; 3]>) {
        match *self {}
    }
}
