//! `num-bigint`: at least; counts the digits. A number does not give access to its pointer and capacity.

use core::alloc::Layout;

use num_bigint::{BigInt, BigUint, Sign};

use crate::measure::impls::plain::plain;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

plain!([] Sign);

/// A number with one digit owns no heap.
impl MallocSizeOf for BigUint {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let digits = self.bits().div_ceil(u64::from(usize::BITS));
        if digits < 2 {
            return 0;
        }
        let digits = usize::try_from(digits).unwrap_or(0);
        ops.enclosing(
            core::ptr::null::<usize>(),
            Layout::array::<usize>(digits).unwrap_or(Layout::new::<()>()),
        )
    }
}

impl MallocSizeOf for BigInt {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.magnitude().size_of_excluding_this(ops)
    }
}
