use std::alloc::Layout;

use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};
use ndarray::{Array, Dimension};

/// All elements of an owned array; free room is not visible.
pub fn measure<A, D, R>(array: &Array<A, D>, ops: &mut MallocSizeOfOps<R>) -> usize
where
    A: MallocSizeOf,
    D: Dimension,
    R: Reading,
{
    let layout = Layout::array::<A>(array.len()).unwrap_or(Layout::new::<()>());
    let own = ops.enclosing(array.as_ptr(), layout);
    own + ops.contents(|ops| array.iter().map(|element| ops.element(element)).sum())
}
