//! The names of threads: those of threads that run are looked up now and then, and a thread that ends leaves its own.

use std::fs;

use dmd_format::recording::{RecordedThread, encode_threads};

use crate::recording::slots::{self, Slot};
use crate::system::background;
use crate::system::lock::{Guarded, Lock};

/// The payload of the next chunk.
static NAMES: Guarded<Vec<u8>> = Guarded::new(Vec::new());

pub(super) fn lock() -> &'static Lock {
    NAMES.lock()
}

/// Keeps the name of a thread that ends. Does nothing in another thread: the child of a fork ends those of its parent.
pub(super) fn thread_ends(number: u32, system_id: u32) {
    if system_id == background::system_id() {
        let name = background::name().to_bytes().to_vec();
        encode_threads(&mut NAMES.hold(), [&RecordedThread { number, system_id, name }]);
    }
}

/// For the child of a fork: forgets the names of its parent's threads.
pub(super) fn forget() {
    NAMES.hold().clear();
}

/// The payload of a chunk with the names that are new.
pub(super) fn take() -> Vec<u8> {
    let mut payload = core::mem::take(&mut *NAMES.hold());
    for (number, system_id) in slots::all().filter_map(Slot::nameless) {
        let name = fs::read(format!("/proc/self/task/{system_id}/comm")).unwrap_or_default();
        let name = name.strip_suffix(b"\n").unwrap_or(&name).to_vec();
        encode_threads(&mut payload, [&RecordedThread { number, system_id, name }]);
    }
    payload
}
