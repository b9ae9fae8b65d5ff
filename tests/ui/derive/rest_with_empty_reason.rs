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
#[malloc_size_of(remote = foreign::Picture, rest = "")]
struct Picture {
    pixels: Vec<u8>,
}

fn main() {}
