use memory_reporter::MallocSizeOf;

#[derive(Default)]
struct Sizes {
    text: usize,
}

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = Sizes)]
struct Page {
    #[malloc_size_of(add_to = "its text")]
    title: String,
}

fn main() {}
