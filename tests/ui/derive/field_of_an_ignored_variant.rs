use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
enum Page {
    #[malloc_size_of(ignore = "a reason")]
    Words(#[malloc_size_of(with = measure)] Vec<String>),
}

fn main() {}
