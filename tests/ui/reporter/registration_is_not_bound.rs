#![deny(unused_must_use)]

use std::sync::Arc;

use memory_reporter::{MemoryReporter, Reports, register_local, register_weak};

struct Fonts;

impl MemoryReporter for Fonts {
    fn collect_reports(&self, _: &mut Reports) {}
}

fn main() {
    let fonts = Arc::new(Fonts);
    register_weak(&fonts);
    register_local(std::rc::Rc::new(Fonts));
}
