use memory_reporter::{Reports, collect_report};

struct Foreign(Vec<u8>);

fn report(out: &mut Reports, value: &Foreign) {
    let _ = &value.0;
    collect_report!(out, "explicit/foreign", Heap, value, "Memory used by the foreign thing.");
}

fn main() {}
