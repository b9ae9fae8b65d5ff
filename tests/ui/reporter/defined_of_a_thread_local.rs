use std::cell::RefCell;

thread_local! {
    static NAMES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

memory_reporter::define_reporter!("explicit/names", Heap, &NAMES, "Memory used by the names.");

fn main() {}
