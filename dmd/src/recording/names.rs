//! The names of threads. Names of running threads are looked up from time to time, and a thread that ends records its
//! own name.

use dmd_format::recording::{RecordedThread, encode_threads};
use dmd_format::tables::THREAD_NAME;

use crate::recording::slots::{self, BufferSlot};
use crate::system::lock::{Lock, LockedValue};
use crate::system::{background, threads};

/// The payload of the next chunk of names: the names of threads that have ended.
static NAMES: LockedValue<Vec<u8>> = LockedValue::new(Vec::new());

pub(super) fn lock() -> &'static Lock {
    NAMES.lock()
}

/// Keeps the name of a thread that is ending, if it is this thread. The child of a fork also calls this for the threads
/// of its parent: their names are not kept.
pub(super) fn thread_ends(number: u32, system_id: u32) {
    if system_id == background::system_id() {
        let name = background::name().to_bytes().to_vec();
        encode_threads(&mut NAMES.hold(), [&RecordedThread { number, system_id, name }]);
    }
}

/// Forgets the kept names. In the child of a fork, they are names of the parent's threads; at the start of a recording
/// for a request, they are names of an earlier recording.
pub(super) fn forget() {
    NAMES.hold().clear();
}

/// Takes out the payload of a chunk with the new names.
pub(super) fn take() -> Vec<u8> {
    let mut payload = core::mem::take(&mut *NAMES.hold());
    for (number, system_id) in slots::all().filter_map(BufferSlot::nameless) {
        let mut name = [0; THREAD_NAME];
        let filled = threads::read(system_id.into(), "comm", &mut name);
        let name = &name[..filled];
        let name = name.strip_suffix(b"\n").unwrap_or(name).to_vec();
        encode_threads(&mut payload, [&RecordedThread { number, system_id, name }]);
    }
    payload
}
