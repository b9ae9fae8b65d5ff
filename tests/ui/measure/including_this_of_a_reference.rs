use memory_reporter::{MallocSizeOfOps, measure::SizeOfIncludingThis};

fn measure<T: SizeOfIncludingThis>(value: &&str) -> usize {
    value.size_of_including_this(&mut MallocSizeOfOps::computed())
}

fn main() {}
