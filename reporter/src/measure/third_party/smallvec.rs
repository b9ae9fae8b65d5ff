//! `smallvec`: exact; a vector that is not on the heap owns only the heap of its elements.

use core::alloc::Layout;

use smallvec::{Array, SmallVec};

use crate::measure::impls::sequence::sequence;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

sequence!([A: Array] SmallVec<A>, A::Item, |vec| vec.iter(), |ops| {
    if !vec.spilled() {
        return 0;
    }
    let Ok(layout) = Layout::array::<A::Item>(vec.capacity()) else { return 0 };
    // SAFETY: the vector is on the heap, so its elements start a block that was allocated for its capacity.
    unsafe { ops.block(vec.as_ptr(), layout) }
});
