use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(ignore, rename = "w", with = 3)]
    words: Vec<String>,
}

fn main() {}
