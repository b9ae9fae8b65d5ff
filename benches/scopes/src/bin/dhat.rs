//! dhat in its testing mode: the whole process.

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    scope_benches::bench("dhat, without a profiler", |work| work());
    let _profiler = dhat::Profiler::builder().testing().build();
    scope_benches::bench("dhat, testing", |work| work());
}
