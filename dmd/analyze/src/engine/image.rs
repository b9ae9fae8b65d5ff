//! The live blocks of a process, read from outside: from the tables of the engine in its memory, or in its core file. No
//! code runs in the process for that.
//!
//! The engine must record every block. `dmd_format::tables` has the layout of its tables.

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

/// A stretch of a process's memory that has a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "what the kernel says of a mapping")]
pub struct FileMapping {
    /// The first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// The offset of the first byte in the file.
    pub offset: u64,
    /// Whether the process may write to it.
    pub is_writable: bool,
    /// The file.
    pub path: String,
}

/// Where a thread of a process was. Unknown parts are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "what a system says of a thread")]
pub struct StoppedThread {
    /// The system's number of it.
    pub number: Option<u64>,
    /// Its name; empty if it has none.
    pub name: String,
    /// The register with the address of its thread-locals.
    pub thread_pointer: Option<u64>,
    /// Its stack pointer or, of a thread that ran at that moment, that in the last function that allocated.
    pub stack_pointer: Option<u64>,
    /// The address of its next instruction, if the stack pointer is that of the moment.
    pub code: Option<u64>,
    /// The outermost frames, as far as they are known, outermost first: where each continues, and its stack pointer there.
    pub frames: Vec<(u64, u64)>,
    /// Its other registers, by DWARF's numbers, as far as they are known.
    pub registers: Vec<(u16, u64)>,
}

/// Reads where the threads of a process were when it was copied. Empty for a process that is not a copy: it knows only its
/// own.
///
/// # Errors
///
/// [`AnalyzeError::Image`] as [`read_image`].
pub fn read_threads(
    memory: &dyn Fn(u64, &mut [u8]) -> usize,
    mappings: &[FileMapping],
) -> Result<Vec<StoppedThread>, AnalyzeError> {
    let memory = ImageMemory::new(memory);
    threads::all(&memory, &TableHeader::find(&memory, mappings)?)
}

/// Reads the live blocks: a dump of scan mode without contents, with an entry for each block.
///
/// `memory` reads from an address on, and returns how many bytes of its buffer it filled. The process must not run
/// meanwhile. `mappings` are those of its program and its libraries.
///
/// # Errors
///
/// [`AnalyzeError::Image`] if there are no tables, if they are of another version or damaged, or if the engine does not
/// record every block. [`AnalyzeError::TooManyEntries`] if there are more blocks and stacks than `max_entries`.
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

/// Adds all nodes.
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
