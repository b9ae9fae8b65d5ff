//! The walk of a value and what it means: the traits, the ops, the readings, and the types of std and of other
//! crates.

mod add_size_of;
mod block;
mod erased;
mod impls;
mod layout;
mod malloc_size_of;
mod mirror;
mod ops;
mod prefetch;
mod reading;
mod size_source;
mod size_summary;
mod stack_guard;
mod stated;
mod tagged_bytes;
mod third_party;
mod walk;
mod walk_state;

pub mod size_tree;

pub use add_size_of::{AddSizeOf, add_size_of};
pub use block::{Block, Edge};
pub use erased::ErasedMallocSizeOf;
pub use malloc_size_of::{
    MallocSizeOf, MallocSizeOfEach, OwningPointer, SizeOfIncludingThis, computed_size_of, malloc_size_of,
};
pub use mirror::of_the_mirrors_type;
pub use ops::MallocSizeOfOps;
pub use reading::{Computed, Erased, Measured, Observe, Reading};
pub use size_summary::{SizeSummary, Summed, size_summary};
pub use size_tree::{SizeTree, computed_size_tree, size_tree};
pub use stack_guard::apart;
pub use stated::bytes;
pub(crate) use walk_state::FaultyPointers;
pub use walk_state::WalkState;

pub(crate) use ops::MOST_BYTES;
pub(crate) use tagged_bytes::TaggedBytes;
pub(crate) use walk_state::Addresses;
