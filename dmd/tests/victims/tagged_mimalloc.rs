//! See `tagged/work.rs`. The allocator is inside of the program, and records nothing itself. Usage, under `libdmd.so`:
//! `tagged_mimalloc REPORT`.

#[path = "tagged/linked.rs"]
mod linked;
#[path = "tagged/work.rs"]
mod work;

use linked::Linked;
use mimalloc::MiMalloc;

unsafe extern "C" {
    fn mi_usable_size(block: *const std::ffi::c_void) -> usize;
}

memory_reporter::global_allocator!(Linked<MiMalloc>: Linked(MiMalloc, mi_usable_size));

fn main() {
    work::run(std::env::args_os().nth(1).expect("a file").as_ref());
}
