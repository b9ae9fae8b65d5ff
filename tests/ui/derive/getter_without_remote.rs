use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(getter = Page::words)]
    words: Vec<String>,
}

fn main() {}
