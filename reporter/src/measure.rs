//! Measures values: the walk of a value, and the readings that decide which bytes of a block count.
//!
//! - [`MallocSizeOf`] is the walk of a value. [`MallocSizeOfEach`] passes each element of a container to a function
//!   that measures it. [`SizeOfIncludingThis`] is for owning pointers, [`ErasedMallocSizeOf`] for `dyn` values, and
//!   [`AddSizeOf`] splits a size into parts.
//! - A [`Reading`] decides what the walk does: [`ComputedReading`] adds up layouts, [`MeasuredReading`] gets
//!   sizes from the declared allocator.
//! - [`SizeTree`] contains the bytes by field and type, [`SizeSummary`] the sums of a value.

mod add_size_of;
mod block;
mod erased;
mod impls;
mod layout;
mod prefetch;
mod size_source;
mod size_summary;
mod tagged_bytes;
mod third_party;
mod walk;
mod walk_state;

pub(crate) mod malloc_size_of;
pub(crate) mod mirror;
pub(crate) mod ops;
pub(crate) mod reach;
pub(crate) mod reading;
pub(crate) mod stack_guard;
pub(crate) mod stated;

pub mod size_tree;

pub use memory_report::{SkipReason, SkippedPart};

pub use add_size_of::{AddSizeOf, add_size_of};
pub use block::{Edge, WalkedBlock};
pub use erased::ErasedMallocSizeOf;
pub use malloc_size_of::{MallocSizeOfEach, OwningPointer, SizeOfIncludingThis};
// Here the compiler's messages can name these traits without a path.
#[doc(hidden)]
pub use malloc_size_of::{Measurable, MeasurableIn};
pub use reading::{ComputedReading, ErasedReading, MeasuredReading, WalkObserver};
pub use size_summary::{SizeSummary, SummaryReading, size_summary};
pub use size_tree::{SizeTree, computed_size_tree};
pub use walk_state::WalkState;

pub(crate) use malloc_size_of::MallocSizeOf;
pub(crate) use ops::{MOST_BYTES, MallocSizeOfOps};
pub(crate) use reading::Reading;
pub(crate) use tagged_bytes::TaggedBytes;
pub(crate) use walk_state::{Addresses, FaultyPointers};
