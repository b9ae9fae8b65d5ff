//! Systems on which DMD cannot record: every entry point returns so, and every hook only forwards.

use std::path::Path;

use crate::error::DumpError;

/// Nothing is recorded on this system.
///
/// # Errors
///
/// Always [`DumpError::NotRunning`].
pub fn report_and_dump(_path: impl AsRef<Path>) -> Result<(), DumpError> {
    Err(DumpError::NotRunning)
}

/// Nothing is recorded on this system.
///
/// # Errors
///
/// Always [`DumpError::NotRunning`].
pub fn dump(_path: impl AsRef<Path>) -> Result<(), DumpError> {
    Err(DumpError::NotRunning)
}

/// Whether blocks of this process are recorded: not on this system.
pub fn is_running() -> bool {
    false
}

/// Nothing is marked on this system; always 0.
pub fn report<T: ?Sized>(_block: *const T) -> usize {
    0
}

/// Nothing is marked on this system; always 0.
pub fn report_on_alloc<T: ?Sized>(_block: *const T) -> usize {
    0
}

/// There are no marks to take away on this system.
pub fn clear_reports() {}

/// There is no door to an engine.
pub(crate) mod door {
    use crate::options::Options;

    #[derive(Debug)]
    pub(crate) enum Door {}

    /// A block on its way from one address to another, which nobody knows of.
    pub(crate) type BlockMove = Option<Door>;

    pub(crate) fn is_off() -> bool {
        true
    }

    pub(crate) fn current(_options: &Option<Options>) -> Option<&'static Door> {
        None
    }

    impl Door {
        pub(crate) fn guarded<T>(&self, _body: impl FnOnce() -> T) -> T {
            match *self {}
        }

        pub(crate) fn is_ours_and_inside(&self) -> bool {
            match *self {}
        }

        pub(crate) fn record(&self, _address: *mut u8, _requested: usize, _usable: usize) {
            match *self {}
        }

        pub(crate) fn forget(&self, _address: *mut u8) {
            match *self {}
        }

        pub(crate) fn begin_move(&self, _address: *mut u8) -> BlockMove {
            match *self {}
        }

        pub(crate) fn commit_move(&self, _begun: &BlockMove) {
            match *self {}
        }

        pub(crate) fn roll_back_move(&self, _begun: &BlockMove) {
            match *self {}
        }
    }
}

/// There is no engine that allocates.
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
    /// None: there are no such blocks.
    #[allow(unsafe_code, reason = "called as where it is unsafe")]
    pub(crate) unsafe fn dealloc(_block: *mut u8, _layout: Layout) {}
}
