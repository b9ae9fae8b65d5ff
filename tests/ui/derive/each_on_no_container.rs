use memory_reporter::MallocSizeOf;

fn measure<R: memory_reporter::Reading>(_: &u8, _: &mut memory_reporter::MallocSizeOfOps<R>) -> usize {
    0
}

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(each = measure)]
    words: u8,
}

fn main() {}
