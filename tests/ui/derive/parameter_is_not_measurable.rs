use memory_reporter::MallocSizeOf;

struct Foreign;

#[derive(MallocSizeOf)]
struct Page<T> {
    words: Vec<T>,
}

fn measure(page: &Page<Foreign>) -> usize {
    memory_reporter::malloc_size_of(page)
}

fn main() {}
