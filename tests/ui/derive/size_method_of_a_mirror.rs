use memory_reporter::MallocSizeOf;

mod foreign {
    pub struct Picture {
        pub pixels: Vec<u8>,
    }
}

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = foreign::Picture, size_method = size)]
struct Picture {
    pixels: Vec<u8>,
}

fn main() {
    let _ = foreign::Picture { pixels: vec![] };
}
