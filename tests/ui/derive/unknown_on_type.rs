use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(ignore = "a reason")]
struct Page {
    words: Vec<String>,
}

fn main() {}
