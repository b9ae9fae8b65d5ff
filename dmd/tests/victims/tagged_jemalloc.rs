//! See `tagged/work.rs`. The allocator is inside of the program, and records nothing itself. Usage, under `libdmd.so`:
//! `tagged_jemalloc REPORT`.

#[path = "tagged/linked.rs"]
mod linked;
#[path = "tagged/work.rs"]
mod work;

use linked::Linked;
use tikv_jemallocator::Jemalloc;

unsafe extern "C" {
    fn _rjem_malloc_usable_size(block: *const std::ffi::c_void) -> usize;
}

memory_reporter::global_allocator!(Linked<Jemalloc>: Linked(Jemalloc, _rjem_malloc_usable_size));

fn main() {
    work::run(std::env::args_os().nth(1).expect("a file").as_ref());
}
