//! The allocators that a program links statically. Only dumps of `libdmd.so` have them.

use super::Dump;

/// An allocator inside the program or one of its libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpAllocator {
    /// The allocator's name, such as `jemalloc`.
    pub name: String,
    /// `the program`, or the name of the library that contains it.
    pub place: String,
    /// The number of its functions that DMD hooked.
    pub functions: u64,
    /// The number of references to these functions.
    pub references: u64,
    /// Which of its blocks DMD did not record, and the reason. `None` if DMD recorded all.
    pub obstacle: Option<String>,
}

impl Dump {
    /// The allocators that the program and its libraries link statically, as DMD found them when the program ran.
    pub fn allocators(&self) -> &[DumpAllocator] {
        &self.allocators
    }

    /// The bytes of blocks from before `about-memory attach`, with the allocator's headers: the dump does not contain
    /// these blocks. A dump of a sample contains the bytes at the attachment; other dumps, those that are still in use.
    /// 0 if the process was not attached to, or if its allocator keeps no count.
    pub fn older_bytes(&self) -> u64 {
        self.older_bytes
    }

    /// The number of blocks whose end DMD did not see: it noticed that their address was given to another block. If the
    /// number is not 0, the dump may contain more freed blocks.
    pub fn unseen_frees(&self) -> u64 {
        self.unseen_frees
    }
}
