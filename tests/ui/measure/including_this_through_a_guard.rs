use std::sync::Mutex;

use memory_reporter::{MallocSizeOfOps, measure::SizeOfIncludingThis};

fn main() {
    let text = Mutex::new(String::from("guarded"));
    text.lock().unwrap().size_of_including_this(&mut MallocSizeOfOps::computed());
}
