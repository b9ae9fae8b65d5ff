//! alloc_tracker: one thread.

use alloc_tracker::{Allocator, Session};

#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

fn main() {
    scope_benches::bench("alloc_tracker, without a session", |work| work());
    let session = Session::new();
    let operation = session.operation("bench");
    scope_benches::bench("alloc_tracker, a thread's span", |work| {
        let _span = operation.measure_thread();
        work();
    });
}
