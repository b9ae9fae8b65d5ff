use memory_reporter::{Reports, collect_report};

fn report(out: &mut Reports, value: &String) {
    collect_report!(out, "Explicit/cache", Heap, value, "Memory used by the cache.");
}

fn main() {}
