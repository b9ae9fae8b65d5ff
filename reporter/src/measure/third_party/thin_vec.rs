//! `thin-vec`: computed; the block contains a header and then the elements.

use core::alloc::Layout;

use thin_vec::ThinVec;

use crate::measure::impls::sequence::sequence;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// Length and capacity, as in a build of the crate without `gecko-ffi`.
type VecHeader = [usize; 2];

/// The layout of the header and the elements, not rounded up to the alignment.
fn block<T>(capacity: usize) -> Option<Layout> {
    let (layout, _) = Layout::new::<VecHeader>().extend(Layout::array::<T>(capacity).ok()?).ok()?;
    Some(layout)
}

sequence!([T] ThinVec<T>, T, |vec| vec.iter(), |ops| {
    if size_of::<T>() == 0 || vec.capacity() == 0 {
        return 0;
    }
    let layout = block::<T>(vec.capacity()).unwrap_or(Layout::new::<()>());
    ops.enclosing(vec.as_slice().as_ptr(), layout)
});
