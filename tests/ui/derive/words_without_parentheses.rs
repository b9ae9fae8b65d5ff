use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of = "a reason"]
    words: Vec<String>,
    #[malloc_size_of]
    letters: Vec<char>,
    #[malloc_size_of("a reason")]
    images: Vec<u8>,
}

fn main() {}
