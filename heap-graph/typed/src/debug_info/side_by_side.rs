//! Runs work on several threads. The results are in the order of the work.

use std::panic::resume_unwind;
use std::thread;

/// Runs each piece of work on its own thread, and the first piece on the caller's thread.
pub(super) fn side_by_side<W: Sync, R: Send>(work: &[W], run: impl Fn(&W) -> R + Sync) -> Vec<R> {
    let Some((first, others)) = work.split_first() else { return Vec::new() };
    let run = &run;
    thread::scope(|scope| {
        let start = |one| (one, thread::Builder::new().spawn_scoped(scope, move || run(one)));
        let others: Vec<_> = others.iter().map(start).collect();
        let first = run(first);
        let others = others.into_iter().map(|(one, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // The system cannot start another thread, so the caller's thread runs this piece.
            Err(_) => run(one),
        });
        std::iter::once(first).chain(others).collect()
    })
}
