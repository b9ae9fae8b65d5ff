use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(skip)]
struct Page {
    #[malloc_size_of(ignore)]
    words: Vec<String>,
    #[malloc_size_of(with)]
    letters: Vec<char>,
}

// No error about a missing impl follows.
fn measure(page: &Page) -> usize {
    memory_reporter::malloc_size_of(page)
}

fn main() {}
