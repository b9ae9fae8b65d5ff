use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(crate = "renamed")]
struct Page {
    words: Vec<String>,
}

fn main() {}
