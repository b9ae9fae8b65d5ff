use memory_reporter::{Reports, collect_report};

fn report(out: &mut Reports, value: &String) {
    let _ = value;
    collect_report!(out, "explicit", Heap, value, "Memory used by everything.");
}

fn main() {}
