use memory_reporter::{MallocSizeOf, malloc_size_of_dyn};

trait Shape {}
malloc_size_of_dyn!(Shape);

fn main() {}
