use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
union Page {
    words: u64,
    letters: [u8; 8],
}

fn main() {}
