use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(stated_by = String::as_str)]
    text: String,
}

fn main() {}
