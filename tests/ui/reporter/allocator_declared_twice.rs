use std::alloc::System;

memory_reporter::global_allocator!(System);
memory_reporter::global_allocator!(System);

fn main() {}
