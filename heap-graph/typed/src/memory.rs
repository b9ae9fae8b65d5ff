//! The memory of a program, read from outside.

mod core_file;
mod glibc_heap;
mod layered;
mod positioned;
mod process;
mod reader;
mod scan;
mod window;

use core::fmt::Debug;

use dmd_analyze::image::StoppedThread;

pub use core_file::CoreFile;
pub use glibc_heap::MallocBlock;
pub use layered::LayeredMemory;
pub use process::ProcessMemory;
pub(crate) use reader::MemoryReader;
pub use scan::ScanMemory;

/// The memory of a program. Inference reads the statics, the stacks, and the blocks that may contain pointers. If it
/// must search for the fields of an arena, it reads all blocks.
pub trait MemorySource: Debug {
    /// Reads memory from `address` on. Returns the number of bytes written to `into`, from its start; 0 if the
    /// address is not readable.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;

    /// The positions of the threads, if they are known.
    fn threads(&self) -> Vec<StoppedThread> {
        Vec::new()
    }

    /// The end of the memory range with this address, if it is known. A stack ends there.
    fn end_of(&self, address: u64) -> Option<u64> {
        let _ = address;
        None
    }

    /// Whether one read may continue from a block into the next block, as in the memory of a process. Adjacent blocks
    /// are then read together.
    fn is_whole(&self) -> bool {
        false
    }
}
