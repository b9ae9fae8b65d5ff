//! Stubs for platforms without DMD: every entry point returns an error, and every hook only forwards calls.

use std::path::Path;

use crate::error::DumpError;

/// Writes nothing on this platform.
///
/// # Errors
///
/// Always returns [`DumpError::NotRunning`].
pub fn report_and_dump(_path: impl AsRef<Path>) -> Result<(), DumpError> {
    Err(DumpError::NotRunning)
}

/// Writes nothing on this platform.
///
/// # Errors
///
/// Always returns [`DumpError::NotRunning`].
pub fn dump(_path: impl AsRef<Path>) -> Result<(), DumpError> {
    Err(DumpError::NotRunning)
}

/// Whether DMD records the blocks of this process. Always false on this platform.
pub fn is_running() -> bool {
    false
}

/// Marks nothing on this platform. Returns 0.
pub fn report<T: ?Sized>(_block: *const T) -> usize {
    0
}

/// Marks nothing on this platform. Returns 0.
pub fn report_on_alloc<T: ?Sized>(_block: *const T) -> usize {
    0
}

/// Does nothing: there are no marks on this platform.
pub fn clear_reports() {}

/// Finds no engine.
pub(crate) mod recorder {
    use crate::options::Options;

    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Recorder {}

    /// A block that moves from one address to another. Never made on this platform.
    #[derive(Debug)]
    pub(crate) struct MovingBlock;

    pub(crate) fn is_off() -> bool {
        true
    }

    pub(crate) fn passes_over(_requested: usize) -> bool {
        true
    }

    pub(crate) fn has_no_record(_block: *mut u8) -> bool {
        true
    }

    pub(crate) fn current(_options: &Option<Options>) -> Option<Recorder> {
        None
    }

    impl Recorder {
        pub(crate) fn guarded<T>(self, _body: impl FnOnce() -> T) -> T {
            match self {}
        }

        pub(crate) fn is_ours_and_inside(self) -> bool {
            match self {}
        }

        pub(crate) fn record(self, _address: *mut u8, _requested: usize, _usable: usize) {
            match self {}
        }

        pub(crate) fn allocation_failed(self, _requested: usize) {
            match self {}
        }

        pub(crate) fn forget(self, _address: *mut u8) {
            match self {}
        }

        pub(crate) fn begin_move(self, _address: *mut u8) -> MovingBlock {
            match self {}
        }

        pub(crate) fn commit_move(self, _moving: &MovingBlock) {
            match self {}
        }

        pub(crate) fn roll_back_move(self, _moving: &MovingBlock) {
            match self {}
        }
    }
}

/// A heap without blocks, since there is no engine.
pub(crate) mod internal_alloc {
    use core::alloc::Layout;
    use core::ptr::null_mut;

    pub(crate) fn alloc(_layout: Layout) -> *mut u8 {
        null_mut()
    }

    pub(crate) fn owns(_block: *const u8) -> bool {
        false
    }

    /// # Safety
    ///
    /// Has no precondition, and does nothing.
    #[allow(unsafe_code, reason = "has the signature of the function on other platforms")]
    pub(crate) unsafe fn dealloc(_block: *mut u8, _layout: Layout) {}
}
