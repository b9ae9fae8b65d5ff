use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(bound = "T: MallocSizeOf", bound = "")]
struct Page<T> {
    words: Vec<T>,
}

fn main() {}
