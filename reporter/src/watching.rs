//! Watching the process as Firefox's `Debugger.Memory` does: cycles of garbage collectors, and the allocations that an
//! engine of DMD records.

mod clock;
mod collector;
mod cycle;
#[cfg(feature = "gc-arena")]
mod gc_arena;

pub use collector::{Collector, CycleProgress, WatchedCollector};
pub use cycle::{
    GarbageCollection, GarbageCollectionCycle, GarbageCollectionHook, GarbageCollectionSlice,
    on_garbage_collection,
};
