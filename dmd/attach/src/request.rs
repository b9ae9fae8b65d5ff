//! The options of a caller, and the replies.

use core::time::Duration;
use std::path::{Path, PathBuf};

/// The options of a call of [`attach`](crate::attach).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttachRequest<'a> {
    /// The contents of `libdmd.so`.
    pub library: &'a [u8],
    /// The folder of the process's socket. It belongs to the process's user, or does not exist yet.
    pub folder: PathBuf,
    /// The mean distance of samples in bytes; 0 records every block.
    pub sample_bytes: u64,
    /// The absolute path of a recording.
    pub record: Option<PathBuf>,
    /// Whether the process records nothing until a request asks for it.
    pub waits: bool,
    /// Whether to attach to a program that filters its own system calls.
    pub despite_filter: bool,
}

impl<'a> AttachRequest<'a> {
    /// A request that records every block.
    pub fn new(library: &'a [u8], folder: &Path) -> Self {
        Self {
            library,
            folder: folder.to_owned(),
            sample_bytes: 0,
            record: None,
            waits: false,
            despite_filter: false,
        }
    }
}

/// An allocator that the program links.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaticAllocator {
    /// Its name.
    pub name: String,
    /// The reason why its blocks are not recorded; `None` if they are.
    pub refusal: Option<String>,
}

/// The result of [`attach`](crate::attach).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AttachReply {
    /// The number of references that now refer to the library.
    pub slots: u64,
    /// The number of objects with such references.
    pub objects: u64,
    /// The bytes that were in use before the attachment, as the process's allocator counts them; `None` without a
    /// count.
    pub heap_before: Option<u64>,
    /// The allocators that the program links.
    pub allocators: Vec<StaticAllocator>,
    /// The number of copies of function addresses, in registers and on stacks of threads, that were replaced by
    /// addresses of functions of the library.
    pub copies: u64,
    /// The time for which one thread of the process was stopped, or made the calls.
    pub stopped: Duration,
}

/// The result of [`detach`](crate::detach).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DetachReply {
    /// The number of references that refer to the C library again.
    pub slots: u64,
    /// The number of blocks from before the attachment that the process has freed during it.
    pub older_freed: u64,
    /// The usable bytes of these blocks.
    pub older_freed_bytes: u64,
    /// The time for which one thread of the process was stopped, or made the calls.
    pub stopped: Duration,
}
