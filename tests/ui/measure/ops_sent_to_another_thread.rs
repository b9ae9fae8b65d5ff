use memory_reporter::{MallocSizeOf, MallocSizeOfOps};

fn main() {
    let mut ops = MallocSizeOfOps::computed();
    std::thread::spawn(move || String::new().size_of_excluding_this(&mut ops));
}
