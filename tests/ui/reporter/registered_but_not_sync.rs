use std::cell::Cell;

use memory_reporter::{MemoryReporter, Reports, register_reporter};

struct Local(Cell<u8>);

impl MemoryReporter for Local {
    fn collect_reports(&self, _: &mut Reports) {
        self.0.set(1);
    }
}

register_reporter!(Local(Cell::new(0)));

fn main() {}
