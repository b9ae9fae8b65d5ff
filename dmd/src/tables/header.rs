//! The addresses of the tables, for readers that run no code in this process. `dmd_format::tables` describes the
//! layout.

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize};

use dmd_format::tables::{HEADER, MAGIC, PLANES, VERSION};

use super::block_table::{BlockTable, RootTable};
use super::trace_tree::{NodeSegments, TraceTree};
use crate::system::threads::THREADS;

/// The addresses of the tables. Only readers outside of the process read the fields.
#[allow(dead_code, reason = "read from outside")]
#[repr(C)]
pub(crate) struct TablesHeader {
    magic: [u8; 16],
    this: &'static Self,
    /// An atomic, so that the header is in writable memory: core files always contain writable memory.
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
    /// Makes the header of these tables. `this` is the address of the header itself.
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
