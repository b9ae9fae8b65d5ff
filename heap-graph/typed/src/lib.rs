//! The typed heap: every block of a Rust program has a type, and every pointer has the path of its field. The program
//! needs no code for this.
//!
//! The type of a block has two sources. Its allocation stack names the type for which a library function was compiled
//! ([`dmd_analyze::TypeNames`]). Debug information (`debug = 2`) contains the positions of the pointers in a value of
//! a known type, and the type of each pointer's target. [`Agreement`] counts how often both sources name the same
//! type. A high agreement is the evidence that both are right. If they contradict each other, the evidence is
//! weighed: a pointer may be a stale word that leads to memory that another block has now.
//!
//! ```no_run
//! use std::fs;
//! use dmd_analyze::{DumpReadOptions, read_with, symbolize::SymbolOptions};
//! use typed_heap::{DebugInfo, ScanMemory, TypedHeap};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut dump = read_with("scan.json.gz", &DumpReadOptions::new().contents(true))?;
//! dump.symbolize(&SymbolOptions::new());
//! let module = dump.modules().first().ok_or("no modules")?;
//! let info = DebugInfo::read(&fs::read(&module.path)?)?;
//! let heap = TypedHeap::new(&dump, &info, module.bias.unwrap_or(0), &ScanMemory::new(&dump)?)?;
//! for row in heap.census().rows {
//!     println!("{} bytes in {} blocks: {}", row.bytes, row.blocks, row.name);
//! }
//! let graph = heap.graph(&dump)?;
//! # Ok(())
//! # }
//! ```
//!
//! # How the parts work together
//!
//! ```text
//! debug_info   types, statics, thread-locals and vtables of a file
//! memory       bytes of a dump, a process or a core file
//! plan         a type compiled to the positions of its pointers; recognizes containers by the names of their members
//! path, walk   from a plan and bytes: pointers with paths of fields
//! blocks       the blocks of a dump, and the types that their stacks name
//! type_name    types as programmers write them
//! agreement, evidence, infer   from stacks and owners: the types of all blocks
//! views        contents that are the same, or the same memory seen in another way
//! merged       stacks that have the names of merged functions
//! unwind, threads    frames of threads, and the blocks that their stacks hold
//! graph, census      the heap as a graph, and as rows by type
//! arena                chunks of arenas, the values in them and the unused rest
//! waste, variants      memory that containers and enums do not use
//! holding_chains       the holders of each block
//! duplicates         equal strings
//! tasks              async tasks, grouped by their current await
//! ```
//!
//! # Limits
//!
//! - Only Rust programs for 64-bit little-endian processors are supported.
//! - Some types of the standard library have no layout: types that no generic code of the program uses, since std
//!   comes without debug information for them. The words of a block without a layout count as pointers if they lead to
//!   the start of a block.
//! - Types of the same name and size are one type if their members are the same at every depth. So two versions of a
//!   crate are distinguished only in types that differ.
//! - The types and statics of a [`Library`] are supported. Its thread-locals are not found.
//! - Roots are statics. If the memory contains the positions of the threads, roots also include the program's
//!   thread-locals and the words of stacks. A copy of a process lacks the registers of other threads, and the frames
//!   of a thread that was running. Blocks without a known holder are held from outside.
//! - The contents of strings, and of slices of bytes and numbers, are read only to find
//!   [duplicates](TypedHeap::duplicates), and to search for the fields and the outgrown buffers of arenas. Graphs and
//!   other results do not include contents.

#![forbid(unsafe_code)]

mod agreement;
mod arena;
mod blocks;
mod census;
mod debug_info;
mod duplicates;
mod error;
mod evidence;
mod graph;
mod holding_chains;
mod infer;
mod memory;
mod merged;
mod path;
mod plan;
mod tasks;
mod threads;
mod type_name;
mod unwind;
mod variants;
mod views;
mod walk;
mod waste;

pub use agreement::Agreement;
pub use blocks::HeapBlock;
pub use census::{TypeCensus, TypeCensusRow};
pub use debug_info::{DebugInfo, Library, TypeId};
pub use duplicates::{DuplicateRow, Duplicates};
pub use error::{DebugInfoLimit, TypedError};
pub use graph::{FROM_OUTSIDE, ROOTS};
pub use holding_chains::{ChainLink, HolderRow, HoldingChains};
pub use infer::{TypeOrigin, TypedHeap};
pub use memory::{CoreFile, LayeredMemory, MallocBlock, MemorySource, ProcessMemory, ScanMemory};
pub use tasks::{AwaitedFuture, HeapTasks, TaskBranch, TaskRow};
pub use waste::{HeapWaste, WasteKind, WasteRow};
