use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(rename = "w")]
    words: Vec<String>,
}

fn main() {}
