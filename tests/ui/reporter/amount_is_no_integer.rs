use memory_reporter::{Reports, collect_report};

fn report(out: &mut Reports, value: &String) {
    let _ = value;
    collect_report!(out, "cache", Other, Percentage, 12.5, "A part of something.");
}

fn main() {}
