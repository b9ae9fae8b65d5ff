//! The workloads on the system's allocator, which profilers are preloaded over.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    profilers::run(|| {})
}
