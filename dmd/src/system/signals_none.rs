//! Stubs: DMD holds signals during a dump only on Linux.

/// Runs `body` without holding signals.
pub(crate) fn held<T>(body: impl FnOnce() -> T) -> T {
    body()
}
