use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
#[repr(packed)]
struct Page {
    words: Vec<String>,
}

fn main() {}
