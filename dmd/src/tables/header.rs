//! Where the tables are, for readers that run no code in this process: `dmd_format::tables` has the layout.

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize};

use dmd_format::tables::{HEADER, MAGIC, PLANES, VERSION};

use super::block_table::{BlockTable, RootTable};
use super::trace_tree::{NodeSegments, TraceTree};
use crate::system::threads::THREADS;

/// Only readers outside of the process read it.
#[allow(dead_code, reason = "read from outside")]
#[repr(C)]
pub(crate) struct TablesHeader {
    magic: [u8; 16],
    this: &'static Self,
    /// Atomic, so that the header lies in writable memory, which core files always have.
    version: AtomicU32,
    bytes: u32,
    phase: &'static AtomicU8,
    below: &'static AtomicUsize,
    root: &'static RootTable,
    planes: &'static [AtomicPtr<RootTable>; PLANES],
    segments: &'static NodeSegments,
    stacks: &'static AtomicU32,
    threads: &'static AtomicPtr<u8>,
}

const _: () = assert!(size_of::<TablesHeader>() == HEADER || size_of::<usize>() != 8);

impl TablesHeader {
    /// The header of these tables, at this address.
    pub(crate) const fn new(
        this: &'static Self,
        table: &'static BlockTable,
        tree: &'static TraceTree,
        phase: &'static AtomicU8,
        below: &'static AtomicUsize,
    ) -> Self {
        Self {
            magic: MAGIC,
            this,
            version: AtomicU32::new(VERSION),
            bytes: HEADER as u32,
            phase,
            below,
            root: &table.root,
            planes: &table.planes,
            segments: &tree.segments,
            stacks: &tree.added,
            threads: &THREADS,
        }
    }
}
