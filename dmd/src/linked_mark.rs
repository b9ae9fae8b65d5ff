//! How others see in the file of a program that it contains the wrapper.

/// The file of a program with the wrapper contains these bytes: `about-memory run` looks for them, since such a
/// program records itself if it cannot preload `libdmd.so`.
#[doc(hidden)]
pub static LINKED_MARK: &[u8] = b"\0the wrapper dmd::Dmd is linked\0";
