use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(rest = "the others are plain")]
struct Page {
    words: Vec<String>,
}

fn main() {}
