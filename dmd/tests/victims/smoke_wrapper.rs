//! Runs the smoke steps with the wrapper. Usage: `smoke_wrapper FOLDER`, with `DMD` set.

#[path = "smoke/steps.rs"]
mod steps;

#[global_allocator]
static ALLOCATOR: dmd::Dmd<std::alloc::System> = dmd::Dmd::new(std::alloc::System);

fn main() {
    steps::run(std::env::args_os().nth(1).expect("a folder").as_ref());
}
