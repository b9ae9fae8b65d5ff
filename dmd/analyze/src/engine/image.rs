//! Reads the live blocks of a process from the tables of its engine, in the memory of the process or in its core file.
//! No code runs in the process.
//!
//! The engine must record every block. `dmd_format::tables` contains the layout of the tables.

mod blocks;
mod header;
mod memory;
mod modules;
mod threads;

use dmd_format::recording::StackNode;
use dmd_format::tables::{FIRST_PC, NODE, SEGMENT};

use crate::dump::Dump;
use crate::error::AnalyzeError;
use crate::recording::tree::CallTree;
use header::TableHeader;
use memory::ImageMemory;

/// A range of a process's memory that maps a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the kernel's description of a mapping")]
pub struct FileMapping {
    /// The first address of the range.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// The offset of the range's first byte in the file.
    pub offset: u64,
    /// Whether the process may write to the range.
    pub is_writable: bool,
    /// The path of the file.
    pub path: String,
}

/// The state of a stopped thread. Unknown parts are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the system's description of a thread")]
pub struct StoppedThread {
    /// The system's id of the thread.
    pub number: Option<u64>,
    /// The thread's name; empty if the thread has no name.
    pub name: String,
    /// The value of the register with the address of the thread's thread-locals.
    pub thread_pointer: Option<u64>,
    /// The thread's stack pointer. For a thread that was running, the stack pointer at its last allocation.
    pub stack_pointer: Option<u64>,
    /// The address of the thread's next instruction; `None` if `stack_pointer` is from an earlier allocation.
    pub code: Option<u64>,
    /// The known outermost frames, outermost first: the address at which the frame continues, and the stack pointer
    /// there.
    pub frames: Vec<(u64, u64)>,
    /// The other known registers, by DWARF's register numbers.
    pub registers: Vec<(u16, u64)>,
}

/// Reads the state that the threads of a process had when the process was copied. `memory` and `mappings` belong to the
/// copy. Returns an empty list if the process is not a copy: only the tables of a copy contain the state of threads.
///
/// # Errors
///
/// Returns [`AnalyzeError::Image`] in the same cases as for [`read_image`].
pub fn read_threads(
    memory: &dyn Fn(u64, &mut [u8]) -> usize,
    mappings: &[FileMapping],
) -> Result<Vec<StoppedThread>, AnalyzeError> {
    let memory = ImageMemory::new(memory);
    threads::all(&memory, &TableHeader::find(&memory, mappings)?)
}

/// Reads the live blocks as a dump of scan mode without contents, with one entry for each block.
///
/// `memory` reads into a buffer from an address, and returns the number of bytes that it read. The process must be
/// stopped during the call. `mappings` are the mappings of the program and its libraries.
///
/// # Errors
///
/// Returns [`AnalyzeError::Image`] if there are no tables, if they have another version, if they are damaged, or if the
/// engine does not record every block. Returns [`AnalyzeError::TooManyEntries`] if there are more blocks and stacks
/// than `max_entries`.
pub fn read_image(
    memory: &dyn Fn(u64, &mut [u8]) -> usize,
    mappings: &[FileMapping],
    max_entries: usize,
) -> Result<Dump, AnalyzeError> {
    let memory = ImageMemory::new(memory);
    let header = TableHeader::find(&memory, mappings)?;
    let mut tree = CallTree::new();
    tree.set_modules(modules::find(&memory, mappings));
    nodes(&memory, &header, &mut tree, max_entries)?;
    let blocks = blocks::all(&memory, &header, max_entries)?;
    tree.scan(blocks, max_entries)
}

/// Adds all calls to the tree.
fn nodes(
    memory: &ImageMemory<'_>,
    header: &TableHeader,
    tree: &mut CallTree,
    max: usize,
) -> Result<(), AnalyzeError> {
    let count = header.stacks as usize + 1;
    if count > max {
        return Err(AnalyzeError::TooManyEntries(max));
    }
    let segments = memory.words(header.segments, count.div_ceil(SEGMENT))?;
    let mut bytes = vec![0; SEGMENT * NODE];
    for (segment, address) in segments.into_iter().enumerate().filter(|(_, address)| *address != 0) {
        memory.fill(address, &mut bytes)?;
        for (index, node) in bytes.chunks_exact(NODE).enumerate() {
            let (pc, parent) = (memory::u64_at(node, 0), memory::u64_at(node, 8) as u32);
            let id = (segment * SEGMENT + index) as u32;
            if pc >= FIRST_PC && (1..count).contains(&(id as usize)) {
                tree.add(StackNode { id, parent, pc });
            }
        }
    }
    Ok(())
}
