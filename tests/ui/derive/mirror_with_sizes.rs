use memory_reporter::MallocSizeOf;

mod foreign {
    pub struct Picture {
        pub pixels: Vec<u8>,
        pub width: u32,
    }

    pub enum Shape {
        Nothing,
        Text(String),
    }
}

#[derive(Default)]
struct Sizes {
    pixels: usize,
}

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = foreign::Picture, sizes = Sizes)]
struct Picture {
    #[malloc_size_of(add_to = pixels)]
    pixels: Vec<u8>,
    width: u32,
}

fn main() {}
