use memory_reporter::MallocSizeOf;

mod serde_json {
    pub struct Value;
}

struct Foreign<T>(T);

#[derive(MallocSizeOf)]
enum Page<T> {
    Text(Option<serde_json::Value>),
    Both { first: Foreign<T>, second: Vec<u8> },
}

fn main() {
    let _ = (Page::<u8>::Text(None), serde_json::Value, Foreign(1).0);
}
