use memory_reporter::MallocSizeOf;

trait Family {
    type Member;
}

#[derive(MallocSizeOf)]
struct Parent<F: Family> {
    children: Vec<F::Member>,
}

struct Same;

impl Family for Same {
    type Member = Parent<Self>;
}

fn main() {
    memory_reporter::computed_size_of(&Parent::<Same> { children: Vec::new() });
}
