//! A stack to write a dump on: a thread may have a small one, or one that is nearly full.

/// Backends of flate2 need some 500 KiB in a debug build.
const BYTES: usize = 2 << 20;

/// Runs `body` on a stack of its own.
pub(crate) fn run<T>(body: impl FnOnce() -> T) -> T {
    stacker::grow(BYTES, body)
}
