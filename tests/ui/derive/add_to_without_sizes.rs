use memory_reporter::MallocSizeOf;

#[derive(Default)]
struct Sizes {
    text: usize,
}

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(add_to = text)]
    title: String,
    #[malloc_size_of(split)]
    body: String,
}

fn main() {}
