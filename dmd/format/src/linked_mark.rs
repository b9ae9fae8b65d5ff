//! The mark in the files of programs that contain the wrapper `dmd::Dmd`.

/// The file of a program with the wrapper contains these bytes. `about-memory run` searches for them: such a program
/// can record itself if `libdmd.so` cannot be preloaded.
pub static LINKED_MARK: &[u8] = b"\0the wrapper dmd::Dmd is linked\0";
