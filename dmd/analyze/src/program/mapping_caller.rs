//! The allocators that map memory, by the stacks of their mappings.

use crate::dump::{CallFrame, Dump};

/// The allocators that made mappings with the stacks of the last `count` blocks of a dump.
pub(super) fn allocators(dump: &Dump, count: usize) -> Vec<Option<&'static str>> {
    let blocks = dump.blocks[dump.blocks.len().saturating_sub(count)..].iter();
    let of_block = |block: &crate::dump::DumpBlock| {
        let frames: Vec<CallFrame<'_>> =
            dump.trace(block.alloc).iter().map(|id| dump.frames.get(*id)).collect();
        allocator(&frames)
    };
    blocks.map(of_block).collect()
}

/// The starts of names of functions inside of allocators that map memory, or that have been inlined into such
/// functions. Names that other programs use, such as `mi_open`, are not among them.
const ALLOCATORS: [(&str, &str); 20] = [
    ("_rjem_", "jemalloc"),
    ("je_pages_", "jemalloc"),
    ("je_extent_", "jemalloc"),
    ("je_ehooks_", "jemalloc"),
    ("os_pages_map", "jemalloc"),
    ("pages_map", "jemalloc"),
    ("_mi_", "mimalloc"),
    ("mi_os_", "mimalloc"),
    ("mi_prim_", "mimalloc"),
    ("mi_arena", "mimalloc"),
    ("mi_unix_mmap", "mimalloc"),
    ("unix_mmap", "mimalloc"),
    ("sn_rust_", "snmalloc"),
    ("snmalloc::", "snmalloc"),
    ("rpmalloc", "rpmalloc"),
    ("_rpmalloc", "rpmalloc"),
    ("tcmalloc", "tcmalloc"),
    ("TCMalloc_SystemAlloc", "tcmalloc"),
    ("_PyObject_Arena", "Python's allocator"),
    ("_PyMem_Arena", "Python's allocator"),
];

/// The hooks that record mappings.
const HOOKS: [&str; 3] = ["mmap", "mmap64", "mremap"];

/// The allocator that made a mapping with this stack: the direct caller of the hook is one of its functions, or has such
/// a function inlined.
pub(super) fn allocator(frames: &[CallFrame<'_>]) -> Option<&'static str> {
    let is_hook = |frame: &&CallFrame<'_>| frame.function.is_some_and(|function| HOOKS.contains(&function));
    let callers = &frames[frames.iter().take_while(is_hook).count()..];
    let direct = callers.iter().position(|frame| !frame.inlined).map_or(callers.len(), |last| last + 1);
    let functions = || callers[..direct].iter().filter_map(|frame| frame.function);
    let is_of = |start: &str| functions().any(|function| function.starts_with(start));
    ALLOCATORS.iter().find(|(start, _)| is_of(start)).map(|(_, allocator)| *allocator)
}
