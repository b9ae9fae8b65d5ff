use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = Option<String>)]
enum Mirror {
    None,
    Some(#[malloc_size_of(getter = String::as_str)] String),
}

fn main() {}
