use memory_reporter::{Reports, collect_report};

fn report(out: &mut Reports, bytes: usize) {
    collect_report!(out, "cache-bytes", Heap, Bytes, bytes, "Memory used by the cache.");
}

fn main() {}
