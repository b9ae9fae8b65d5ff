//! The system's allocator alone.

fn main() {
    scope_benches::bench("system", |work| work());
}
