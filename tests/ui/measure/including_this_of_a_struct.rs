use memory_reporter::{MallocSizeOf, MallocSizeOfOps, measure::SizeOfIncludingThis};

#[derive(MallocSizeOf)]
struct Page(Vec<u8>);

fn main() {
    let page = Box::new(Page(vec![1]));
    // A call through the box is right; a call on the value inside the box is wrong.
    page.size_of_including_this(&mut MallocSizeOfOps::computed());
    (*page).size_of_including_this(&mut MallocSizeOfOps::computed());
}
