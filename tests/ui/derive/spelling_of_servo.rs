use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[ignore_malloc_size_of = "a reason"]
    words: Vec<String>,
}

fn main() {}
