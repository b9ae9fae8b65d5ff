use memory_reporter::MallocSizeOf;

use std::rc::Rc;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(conditional, ignore = "the cache reports it")]
    title: Rc<str>,
}

fn main() {}
