use memory_reporter::MallocSizeOf;

trait Shape {}

#[derive(MallocSizeOf)]
struct Drawing {
    shapes: Vec<Box<dyn Shape>>,
}

fn main() {}
