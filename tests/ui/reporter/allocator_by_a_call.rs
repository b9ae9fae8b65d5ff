use std::alloc::System;

mod dmd {
    pub struct Dmd<A>(pub A);

    impl<A> Dmd<A> {
        pub const fn new(allocator: A) -> Self {
            Self(allocator)
        }
    }
}

memory_reporter::global_allocator!(dmd::Dmd::new(System));

fn main() {
    let _ = dmd::Dmd::new(System).0;
}
