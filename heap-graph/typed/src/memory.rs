//! Memory of a program, read from outside.

mod core_file;
mod layered;
mod positioned;
mod process;
mod reader;
mod scan;
mod window;

use core::fmt::Debug;

use dmd_analyze::image::StoppedThread;

pub use core_file::CoreFile;
pub use layered::LayeredMemory;
pub use process::ProcessMemory;
pub(crate) use reader::MemoryReader;
pub use scan::ScanMemory;

/// Memory of a program. Inference reads only blocks whose types have pointers, and statics.
pub trait MemorySource: Debug {
    /// Reads memory from `address` on. Returns how many bytes of `into` it filled, from the start; 0 if the address is
    /// not readable.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;

    /// Where the threads were, as far as that is known.
    fn threads(&self) -> Vec<StoppedThread> {
        Vec::new()
    }

    /// The address behind the stretch of memory with this address, as far as that is known: a stack ends there.
    fn end_of(&self, address: u64) -> Option<u64> {
        let _ = address;
        None
    }

    /// Whether a read may go on from one block into the next one, as in the memory of a process. Blocks that follow each
    /// other are then read together.
    fn is_whole(&self) -> bool {
        false
    }
}
