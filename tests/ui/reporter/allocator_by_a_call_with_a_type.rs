use std::alloc::System;

struct Dmd<A>(A);

impl<A> Dmd<A> {
    const fn new(allocator: A) -> Self {
        Self(allocator)
    }
}

memory_reporter::global_allocator!(Dmd::<System>::new(System));

fn main() {
    let _ = Dmd::new(System).0;
}
