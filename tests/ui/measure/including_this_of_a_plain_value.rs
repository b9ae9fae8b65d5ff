use memory_reporter::{MallocSizeOfOps, measure::SizeOfIncludingThis};

fn main() {
    let text = String::from("plain");
    text.size_of_including_this(&mut MallocSizeOfOps::computed());
}
