use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
enum Page {
    #[malloc_size_of(with = measure)]
    Words(Vec<String>),
}

fn main() {}
