//! The resident memory of the process when it wrote the dump, by owner.

use dmd_format::Mode;

use super::trace_id::DumpTraceId;
use super::{Dump, DumpTime};
use crate::error::AnalyzeError;

/// The owner of an area of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MemoryOwner {
    /// No known owner.
    #[default]
    Unknown,
    /// DMD: its tables, its threads and its library.
    Dmd,
    /// A program or a library: code, data and zeroed data.
    Binary,
    /// A mapped file, or shared memory.
    File,
    /// The stack of a thread.
    Stack,
    /// The main heap of the C library.
    Heap,
    /// A further heap of the C library.
    Arena,
    /// Pages with recorded blocks, outside of the heaps of the C library. An allocator mapped them.
    Chunk,
    /// A mapping that the program made itself.
    Mapping,
    /// Pages of the kernel.
    Kernel,
}

impl MemoryOwner {
    /// All owners.
    pub const ALL: [Self; 10] = [
        Self::Unknown,
        Self::Dmd,
        Self::Binary,
        Self::File,
        Self::Stack,
        Self::Heap,
        Self::Arena,
        Self::Chunk,
        Self::Mapping,
        Self::Kernel,
    ];

    /// The name in dumps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Dmd => "dmd",
            Self::Binary => "binary",
            Self::File => "file",
            Self::Stack => "stack",
            Self::Heap => "heap",
            Self::Arena => "arena",
            Self::Chunk => "chunk",
            Self::Mapping => "mapping",
            Self::Kernel => "kernel",
        }
    }

    /// Whether an allocator uses the area for blocks.
    pub fn is_of_allocator(self) -> bool {
        matches!(self, Self::Heap | Self::Arena | Self::Chunk)
    }
}

/// An area: a range of addresses with one owner.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MemoryArea {
    /// The first address.
    pub start: u64,
    /// The length in bytes.
    pub bytes: u64,
    /// The owner.
    pub owner: MemoryOwner,
    /// The name of the file or of the thread; empty for other memory.
    pub name: String,
    /// The access, as in `/proc/self/maps`: `rw-p`.
    pub access: String,
    /// Bytes in memory.
    pub resident: u64,
    /// Bytes that are swapped out.
    pub swapped: u64,
    /// Bytes in memory that the program gave back with `MADV_FREE`: the kernel takes them when it needs memory.
    pub lazy_free: u64,
    /// The number of live blocks that start in the area.
    pub blocks: u64,
    /// Usable bytes of these blocks.
    pub live: u64,
    /// Bytes of these blocks that are in memory.
    pub live_resident: u64,
    /// Bytes of these blocks that are swapped out.
    pub live_swapped: u64,
    /// The stack that made the mapping.
    pub(crate) alloc: DumpTraceId,
}

impl MemoryArea {
    /// The index in [`Dump::stacks`] of the stack that made the mapping; `None` if it is not known.
    pub fn stack(&self) -> Option<usize> {
        self.alloc.index()
    }
}

/// The memory of a process at the time of its dump.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MemoryByOwner {
    /// The bytes of a page.
    pub page_size: u64,
    /// The resident bytes of the process, by the kernel's own sum.
    pub resident: u64,
    /// Whether threads of the program changed the memory while the dump read it, so that the areas may not add up.
    pub is_changing: bool,
    /// The number of mappings that DMD did not record, because its table was full.
    pub lost_mappings: u64,
    /// The areas, sorted by address.
    pub areas: Vec<MemoryArea>,
}

impl Dump {
    /// The memory of the process when it wrote the dump.
    ///
    /// # Errors
    ///
    /// Returns an error with the reason if the dump does not have this memory.
    pub fn memory(&self) -> Result<&MemoryByOwner, AnalyzeError> {
        match &self.memory {
            Some(Ok(memory)) => Ok(memory),
            Some(Err(reason)) => Err(AnalyzeError::MemoryUnreadable(reason.clone())),
            None => Err(AnalyzeError::NoMemory),
        }
    }

    /// Checks that the dump has the resident bytes of the blocks that it shows.
    ///
    /// # Errors
    ///
    /// Returns an error with the reason if the dump does not have these bytes.
    pub fn check_resident(&self) -> Result<(), AnalyzeError> {
        self.memory()?;
        if self.shown != DumpTime::End {
            return Err(AnalyzeError::MemoryAtEnd);
        }
        if self.mode == Mode::Cumulative { Err(AnalyzeError::MemoryOfFreed) } else { Ok(()) }
    }
}
