//! `bitvec`: exact; the words of a `BitVec` start its block.

use core::alloc::Layout;

use bitvec::array::BitArray;
use bitvec::boxed::BitBox;
use bitvec::order::BitOrder;
use bitvec::slice::BitSlice;
use bitvec::store::BitStore;
use bitvec::vec::BitVec;
use bitvec::view::BitViewSized;

use crate::measure::impls::plain::plain;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

plain!([A: BitViewSized, O: BitOrder] BitArray<A, O>, [T: BitStore, O: BitOrder] BitSlice<T, O>);

impl<T: BitStore, O: BitOrder> MallocSizeOf for BitVec<T, O> {
    #[allow(unsafe_code, reason = "passes the start of the vector's block to `ops.block`")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        // The capacity leaves out the unused bits before the first bit. Their number is less than the bits of a word.
        let words = self.capacity().div_ceil(8 * size_of::<T>());
        let Ok(layout) = Layout::array::<T>(words) else { return 0 };
        // SAFETY: the words start the block of a `Vec<T>`, which was allocated for this capacity.
        unsafe { ops.block(self.as_raw_slice().as_ptr(), layout) }
    }
}

impl<T: BitStore, O: BitOrder> MallocSizeOf for BitBox<T, O> {
    #[allow(unsafe_code, reason = "passes the start of the box's block to `ops.block`")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let words = self.as_raw_slice();
        // SAFETY: the words are the contents of a `Box<[T]>`, so they start a block with their layout.
        unsafe { ops.block(words.as_ptr(), Layout::for_value(words)) }
    }
}
