//! The other crates, each asked for the heap bytes without the value itself.

use std::collections::{BTreeMap, HashMap};

use crate::Measurer;
use crate::data::{Graph, Json, Node, Record};

/// Which crates can measure a type.
pub(crate) trait Rivals: Sized + 'static {
    /// Those that compute.
    const COMPUTING: &'static [Measurer<Self>];
    /// Those that ask the allocator.
    const MEASURING: &'static [Measurer<Self>];
}

fn get_size2<T: get_size2::GetSize>(value: &T) -> usize {
    value.get_heap_size_with_tracker(get_size2::StandardTracker::new()).0
}

fn deepsize<T: deepsize::DeepSizeOf>(value: &T) -> usize {
    value.deep_size_of() - size_of_val(value)
}

fn allocative<T: allocative::Allocative>(value: &T) -> usize {
    allocative::size_of_unique_allocated_data(value)
}

/// Firefox's and Servo's own.
#[allow(unsafe_code, reason = "the crate wants a C function")]
fn stylo<T: malloc_size_of::MallocSizeOf>(value: &T) -> usize {
    unsafe extern "C" fn ask(pointer: *const std::ffi::c_void) -> usize {
        // SAFETY: the crate passes starts of blocks of the C library's malloc.
        unsafe { libc::malloc_usable_size(pointer.cast_mut()) }
    }
    value.size_of(&mut malloc_size_of::MallocSizeOfOps::new(ask, None, None))
}

macro_rules! rivals {
    ($type:ty; $($computing:ident),*; $($measuring:ident),*) => {
        impl Rivals for $type {
            const COMPUTING: &'static [Measurer<Self>] =
                &[$((stringify!($computing), $computing::<$type>)),*];
            const MEASURING: &'static [Measurer<Self>] =
                &[$((stringify!($measuring), $measuring::<$type>)),*];
        }
    };
}
rivals!(Vec<String>; get_size2, deepsize, allocative; stylo);
rivals!(HashMap<u64, Vec<u32>>; get_size2, deepsize, allocative; stylo);
rivals!(BTreeMap<String, Box<Record>>; get_size2, deepsize, allocative; stylo);
rivals!(Node; get_size2, deepsize, allocative; stylo);
// stylo leaves `Arc` to the user on purpose.
rivals!(Graph; get_size2, deepsize, allocative; );
rivals!(Vec<[f64; 3]>; get_size2, deepsize, allocative; );
rivals!(Json; get_size2, deepsize, allocative; stylo);
