use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = "foreign::Picture")]
struct Picture {
    pixels: Vec<u8>,
}

fn main() {}
