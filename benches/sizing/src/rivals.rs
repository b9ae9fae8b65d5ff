//! The other crates: each measures the heap bytes below a value, without the value itself.
//!
//! The result is `None` if a crate has no impl for a type. If the bound of `Covered` is satisfied, the method lookup
//! selects `Covered`: a call of `NotCovered` needs one more reference, so the lookup tries it later.

use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::Arc;

use malloc_size_of::{MallocShallowSizeOf as _, MallocSizeOfOps};

use crate::data::{Graph, Node};

/// The name of a crate, and the function that measures a value with this crate.
pub(crate) type Measurer<T> = (&'static str, fn(&T) -> Option<usize>);

macro_rules! measurer {
    ($name:ident, $bound:path, |$value:ident| $bytes:expr) => {
        pub(crate) mod $name {
            pub(crate) struct Asked<'a, T: ?Sized>(pub(crate) &'a T);

            pub(crate) trait Covered {
                fn bytes(&self) -> Option<usize>;
            }

            impl<T: $bound> Covered for Asked<'_, T> {
                #[inline(always)]
                fn bytes(&self) -> Option<usize> {
                    let $value = self.0;
                    Some($bytes)
                }
            }

            #[allow(dead_code, reason = "some crates cover every type in the tables")]
            pub(crate) trait NotCovered {
                fn bytes(&self) -> Option<usize> {
                    None
                }
            }

            impl<T: ?Sized> NotCovered for &Asked<'_, T> {}
        }
    };
}
measurer!(floor_computed, crate::floor::Floor, |v| v.walk::<crate::floor::Computed>());
measurer!(ours_computed, ::memory_reporter::MallocSizeOf, |v| ::memory_reporter::computed_size_of(v));
measurer!(ours_computed_tree, ::memory_reporter::MallocSizeOf, |v| {
    ::memory_reporter::measure::computed_size_tree(v).total().asked
});
measurer!(ours_tree, ::memory_reporter::MallocSizeOf, |v| ::memory_reporter::size_tree(v).total().asked);
measurer!(allocative, ::allocative::Allocative, |v| ::allocative::size_of_unique_allocated_data(v));
measurer!(allocative_flame, ::allocative::Allocative, |v| super::flame_graph(v));
measurer!(datasize, ::datasize::DataSize, |v| ::datasize::data_size(v));
measurer!(deepsize, ::deepsize::DeepSizeOf, |v| v.deep_size_of() - size_of_val(v));
measurer!(get_size2, ::get_size2::GetSize, |v| {
    v.get_heap_size_with_tracker(::get_size2::StandardTracker::new()).0
});
measurer!(loupe, ::loupe::MemoryUsage, |v| ::loupe::size_of_val(v).wrapping_sub(size_of_val(v)));
measurer!(mem_dbg, ::mem_dbg::MemSize, |v| {
    v.mem_size(::mem_dbg::SizeFlags::CAPACITY | ::mem_dbg::SizeFlags::FOLLOW_RCS).wrapping_sub(size_of_val(v))
});
measurer!(memuse, ::memuse::DynamicUsage, |v| v.dynamic_usage());
measurer!(floor_measured, crate::floor::Floor, |v| v.walk::<crate::floor::Measured>());
measurer!(ours_measured, ::memory_reporter::MallocSizeOf, |v| ::memory_reporter::malloc_size_of(v));
measurer!(heapsize, ::heapsize::HeapSizeOf, |v| v.heap_size_of_children());
measurer!(parity, ::parity_util_mem::MallocSizeOf, |v| ::parity_util_mem::malloc_size(v));
measurer!(stylo, ::malloc_size_of::MallocSizeOf, |v| v.size_of(&mut super::stylo_ops()));

/// The first measurer that asks the allocator; the measurers before it compute sizes.
pub(crate) const FIRST_ASKING: &str = "floor measured";

/// Every measurer for a type, in the order of the tables.
#[macro_export]
macro_rules! measurers {
    ($type:ty) => {{
        macro_rules! one {
            ($name:ident) => {
                |value: &$type| {
                    #[allow(unused_imports, reason = "the method comes from one of the two traits")]
                    use $crate::rivals::$name::{Asked, Covered as _, NotCovered as _};
                    (&Asked(value)).bytes()
                }
            };
        }
        let measurers: Vec<$crate::rivals::Measurer<$type>> = vec![
            ("floor computed", one!(floor_computed)),
            ("ours computed", one!(ours_computed)),
            ("ours computed tree", one!(ours_computed_tree)),
            ("allocative", one!(allocative)),
            ("allocative flame", one!(allocative_flame)),
            ("datasize", one!(datasize)),
            ("deepsize", one!(deepsize)),
            ("get-size2", one!(get_size2)),
            ("loupe", one!(loupe)),
            ("mem_dbg", one!(mem_dbg)),
            ("memuse", one!(memuse)),
            ("floor measured", one!(floor_measured)),
            ("ours measured", one!(ours_measured)),
            ("ours tree", one!(ours_tree)),
            ("heapsize", one!(heapsize)),
            ("parity", one!(parity)),
            ("stylo", one!(stylo)),
        ];
        measurers
    }};
}

fn flame_graph<T: ::allocative::Allocative>(value: &T) -> usize {
    let mut builder = ::allocative::FlameGraphBuilder::default();
    builder.visit_root(value);
    builder.finish().flamegraph().total_size() - size_of_val(value)
}

/// The crate of Firefox and Servo needs C functions, and a set of visited pointers.
#[allow(unsafe_code, reason = "the crate needs a C function")]
fn stylo_ops() -> MallocSizeOfOps {
    unsafe extern "C" fn ask(pointer: *const c_void) -> usize {
        // SAFETY: the crate passes starts of live blocks of the C library's malloc.
        unsafe { libc::malloc_usable_size(pointer.cast_mut()) }
    }
    let mut seen = HashSet::new();
    MallocSizeOfOps::new(ask, None, Some(Box::new(move |pointer| !seen.insert(pointer))))
}

/// stylo's crate intentionally has no impl for `Arc`, and leaves the impl to the user.
impl ::malloc_size_of::MallocSizeOf for Graph {
    fn size_of(&self, ops: &mut MallocSizeOfOps) -> usize {
        let mut bytes = self.nodes.shallow_size_of(ops) + self.edges.shallow_size_of(ops);
        for leaf in self.nodes.iter().chain(&self.edges) {
            let pointer = Arc::as_ptr(leaf);
            if !ops.have_seen_ptr(pointer) {
                // The two counts of an `Arc` are before the value.
                let block = pointer.wrapping_byte_sub(16);
                #[allow(unsafe_code, reason = "users of the crate write the same code")]
                // SAFETY: the `Arc` is live, and its block starts with its two counts, so `block` is its start.
                let own = unsafe { ops.malloc_size_of(block) };
                bytes += own + (**leaf).size_of(ops);
            }
        }
        bytes
    }
}

/// A handwritten impl, since memuse has no derive.
impl ::memuse::DynamicUsage for Node {
    fn dynamic_usage(&self) -> usize {
        self.left.dynamic_usage() + self.right.dynamic_usage()
    }

    fn dynamic_usage_bounds(&self) -> (usize, Option<usize>) {
        (0, None)
    }
}
