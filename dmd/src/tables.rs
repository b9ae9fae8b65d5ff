//! The recorded data: live blocks, their stacks, freed blocks, and the reports of blocks. Hooks write this data.

#[allow(unsafe_code, reason = "memory indexed by address")]
pub(crate) mod block_table;
pub(crate) mod dead_blocks;
pub(crate) mod events;
pub(crate) mod header;
pub(crate) mod linked_allocators;
#[allow(unsafe_code, reason = "a mapping behind a lock")]
pub(crate) mod logs;
#[cfg(target_os = "linux")]
#[cfg_attr(engine = "portable", allow(dead_code, reason = "only `libdmd.so` records mappings"))]
pub(crate) mod mappings;
pub(crate) mod mark;
pub(crate) mod observers;
#[allow(unsafe_code, reason = "segments that are never unmapped")]
pub(crate) mod peak;
pub(crate) mod pending;
pub(crate) mod runs;
pub(crate) mod sample_filter;
#[cfg_attr(engine = "portable", path = "tables/seen_modules_portable.rs")]
#[allow(unsafe_code, reason = "records that are never unmapped")]
pub(crate) mod seen_modules;
#[cfg_attr(engine = "portable", path = "tables/stack_portable.rs")]
#[cfg_attr(
    engine = "portable",
    allow(unsafe_code, reason = "a walk without the lock of the crate `backtrace`")
)]
pub(crate) mod stack;
pub(crate) mod statistics;
#[allow(unsafe_code, reason = "memory that a thread leases")]
pub(crate) mod thread;
pub(crate) mod trace_id;
#[allow(unsafe_code, reason = "a table read without a lock")]
pub(crate) mod trace_tree;
