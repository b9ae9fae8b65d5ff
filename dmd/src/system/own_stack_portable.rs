//! A separate stack for writing a dump: a thread may have a small stack, or one that is nearly full.

/// The size of the stack. Backends of flate2 need about 500 KiB in a debug build.
const BYTES: usize = 2 << 20;

/// Runs `body` on a separate stack.
pub(crate) fn run<T>(body: impl FnOnce() -> T) -> T {
    stacker::grow(BYTES, body)
}
