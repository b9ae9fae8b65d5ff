use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(skip)]
    words: Vec<String>,
}

fn main() {}
