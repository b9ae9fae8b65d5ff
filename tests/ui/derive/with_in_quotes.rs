use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(with = "measure")]
    words: Vec<String>,
}

fn main() {}
