use memory_reporter::{MallocSizeOf, MallocSizeOfOps, measure::SizeOfIncludingThis};

#[derive(MallocSizeOf)]
struct Page(Vec<u8>);

fn main() {
    let page = Box::new(Page(vec![1]));
    // Via the box it is right, via what the box points to it is not.
    page.size_of_including_this(&mut MallocSizeOfOps::computed());
    (*page).size_of_including_this(&mut MallocSizeOfOps::computed());
}
