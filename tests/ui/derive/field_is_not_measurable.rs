use memory_reporter::MallocSizeOf;

struct Foreign;

#[derive(MallocSizeOf)]
struct Page {
    words: Vec<Foreign>,
}

fn main() {}
