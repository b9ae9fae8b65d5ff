//! See `linked/work.rs` and `linked/stories.rs`.

#[path = "linked/stories.rs"]
mod stories;
#[path = "linked/work.rs"]
mod work;

#[global_allocator]
static ALLOCATOR: work::Counting<mimalloc::MiMalloc> = work::Counting(mimalloc::MiMalloc);

fn main() {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some("stories") {
        stories::run(&words.next().unwrap_or_default());
    } else {
        work::run();
    }
}
