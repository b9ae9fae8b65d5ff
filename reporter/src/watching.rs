//! Watches the process as Firefox's `Debugger.Memory` does: the cycles of garbage collectors, and the allocations
//! that an engine of DMD records.

mod clock;
mod collector;
mod cycle;
mod described;
#[cfg(feature = "gc-arena07")]
mod gc_arena;
mod nursery;
mod observer;
mod saved_stack;

pub use crate::engine_abi::SiteFrame;
pub use collector::{Collector, CycleProgress, WatchedCollector};
pub use cycle::{
    GarbageCollection, GarbageCollectionCycle, GarbageCollectionHook, GarbageCollectionSlice,
    on_garbage_collection,
};
pub use described::{ClassName, describe_block};
pub use nursery::{NurseryRegistration, register_nursery};
pub use observer::{
    AllocationsLogEntry, GarbageCollectionHandler, MemoryObserver, ObserverError, UncaughtExceptionHandler,
};
pub use saved_stack::{SavedStack, allocation_site};
