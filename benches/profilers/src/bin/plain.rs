//! Runs the workloads with the system's allocator, for preloaded profilers.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    profilers::run(|| {})
}
