use std::ffi::{c_char, c_int, c_void};

use memory_reporter::bridge::{EachFrame, EachRow, Engine, Rows, SiteFrame, Sizes, connect};

extern "C" fn path(_: *const u8, _: usize) -> u32 {
    0
}

extern "C" fn mark(_: *const c_void, _: u32) -> usize {
    0
}

extern "C" fn claim(_: u32, _: u64) {}

extern "C" fn sizes(_: *mut Sizes) {}

extern "C" fn dump(_: *const c_char, _: u64) -> c_int {
    0
}

extern "C" fn heap(_: *const c_void) -> u64 {
    0
}

extern "C" fn begin(_: bool) -> u32 {
    1
}

extern "C" fn enter(_: u32) -> u32 {
    0
}

extern "C" fn end(_: u32, _: *mut c_void, _: EachRow) -> Rows {
    Rows::None
}

extern "C" fn site(_: *const c_void) -> u64 {
    1
}

extern "C" fn frames(_: u64, _: *mut c_void, each: EachFrame) {
    each(std::ptr::null_mut(), &SiteFrame::new("function", "place", 1));
}

extern "C" fn is_unreported(_: *const c_void) -> bool {
    false
}

static ENGINE: Engine = Engine::new(
    path, mark, mark, mark, claim, sizes, dump, heap, begin, enter, end, site, frames, is_unreported,
    new_reporter, enter, withdraw,
);

extern "C" fn new_reporter() -> u32 {
    1
}

extern "C" fn withdraw(_: u32, _: u32, _: u64) {}

fn main() {
    connect(&ENGINE);
}
