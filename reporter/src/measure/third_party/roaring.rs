//! `roaring`: at least; counts the containers of values by their capacity, and their list by its length. A bitmap
//! does not give access to its pointers, so DMD cannot mark its blocks.

use core::alloc::Layout;
use core::ptr::null;

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// A copy of the crate's own `BitmapContainer`, a key and one of three kinds of store, so that the compiler gives both
/// the same layout.
#[allow(dead_code, reason = "only its layout is used")]
struct BitmapContainer {
    key: u16,
    store: ContainerStore,
}

#[allow(dead_code, reason = "only its layout is used")]
enum ContainerStore {
    Array(Vec<u16>),
    Bitmap(u64, Box<[u64; 1024]>),
    Run(Vec<[u16; 2]>),
}

impl MallocSizeOf for RoaringBitmap {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let told = self.statistics();
        // The statistics count four bytes for each two bytes of an array. For a bitset they count each bit as a byte.
        // For each container of runs they count two bytes too many.
        let stores = told.n_bytes_array_containers / 2
            + u64::from(told.n_bitset_containers) * 8192
            + told.n_bytes_run_containers.saturating_sub(2 * u64::from(told.n_run_containers));
        let stores = usize::try_from(stores).unwrap_or(0);
        let list =
            Layout::array::<BitmapContainer>(told.n_containers as usize).unwrap_or(Layout::new::<()>());
        ops.enclosing(null::<BitmapContainer>(), list)
            + ops.enclosing(null::<u16>(), Layout::array::<u8>(stores).unwrap_or(Layout::new::<()>()))
    }
}

impl MallocSizeOf for RoaringTreemap {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.bitmaps().map(|(_, bitmap)| ops.value(bitmap)).sum()
    }
}
