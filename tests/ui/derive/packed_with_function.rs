use memory_reporter::MallocSizeOf;

fn measure<R: memory_reporter::Reading>(_: &u64, _: &mut memory_reporter::MallocSizeOfOps<R>) -> usize {
    0
}

#[derive(MallocSizeOf)]
#[repr(C, packed(2))]
struct Page {
    #[malloc_size_of(with = measure)]
    words: u64,
}

fn main() {}
