use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(ignore = "a reason" with = measure)]
    words: Vec<String>,
}

fn main() {}
