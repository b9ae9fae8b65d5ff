//! Runs the workloads with DMD linked in. Without `$DMD`, DMD is switched off.

use std::alloc::System;

#[global_allocator]
static ALLOCATOR: dmd::Dmd<System> = dmd::Dmd::new(System);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    profilers::run(|| {})
}
