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

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = foreign::Picture)]
struct Picture {
    pixels: Box<[u8]>,
    width: u32,
}

fn main() {}
