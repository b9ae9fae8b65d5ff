use memory_reporter::MallocSizeOf;

#[derive(Default)]
struct Sizes {
    text: usize,
}

fn size<R>(_: &String, _: &mut R) -> usize {
    0
}

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = Sizes)]
struct Page {
    #[malloc_size_of(split, with = size)]
    title: String,
}

fn main() {}
