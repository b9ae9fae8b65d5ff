//! `thin-vec`: computed; the block contains a header and then the elements.

use core::alloc::Layout;

use thin_vec::ThinVec;

use crate::measure::impls::sequence::elements;
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

impl<T: MallocSizeOf> MallocSizeOf for ThinVec<T> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if T::NEEDS_WALK || ops.wants_names() {
            self.size_of_each(ops, T::size_of_excluding_this)
        } else {
            self.shallow_size_of_excluding_this(ops)
        }
    }
}

impl<T> MallocSizeOfEach for ThinVec<T> {
    type Each<'a>
        = &'a T
    where
        T: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        each: impl FnMut(&'a T, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        self.shallow_size_of_excluding_this(ops) + elements(self.iter(), ops, each)
    }

    #[inline]
    fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if size_of::<T>() == 0 || self.capacity() == 0 {
            return 0;
        }
        let layout = block::<T>(self.capacity()).unwrap_or(Layout::new::<()>());
        ops.enclosing(self.as_slice().as_ptr(), layout)
    }
}
