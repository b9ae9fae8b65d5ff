use memory_reporter::{Reports, collect_report};

fn report(out: &mut Reports, value: &String) {
    let _ = value;
    collect_report!(out, "cache\u{1b}", Other, Count, 1, "A number of things.");
}

fn main() {}
