use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(bound = T)]
struct Page<T> {
    words: Vec<T>,
}

fn main() {}
