use std::sync::Mutex;

static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());

memory_reporter::define_reporter!("explicit/names", NonHeap, &NAMES, "Memory used by the names.");

fn main() {}
