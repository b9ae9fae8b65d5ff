//! Runs independent pieces of work on several threads.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// The number of threads for an option: 0 means one for each processor.
pub(super) fn number(chosen: usize) -> usize {
    match chosen {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

/// Calls `work` with each piece, on the calling thread and on additional threads.
pub(super) fn for_each<T: Send>(
    pieces: impl ExactSizeIterator<Item = T> + Send,
    threads: usize,
    work: impl Fn(T) + Sync,
) {
    let others = threads.min(pieces.len()).saturating_sub(1);
    let left = Mutex::new(pieces);
    let work = || {
        loop {
            let piece = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(piece) = piece else { return };
            work(piece);
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            // If a thread cannot start, the other threads do its work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}
