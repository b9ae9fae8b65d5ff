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

    /// The number of blocks whose end DMD did not see. DMD counts such a block when another block gets the same
    /// address. If the number is not 0, the dump may contain further freed blocks.
    pub fn unseen_frees(&self) -> u64 {
        self.unseen_frees
    }
}
