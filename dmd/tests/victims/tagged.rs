//! See `tagged/work.rs`. Usage, with `DMD`: `tagged REPORT DUMP`.

#[path = "tagged/work.rs"]
mod work;

use std::alloc::System;

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let mut file = || arguments.next().expect("a file");
    let (report, dump) = (file(), file());
    work::run(report.as_ref());
    dmd::report_and_dump(dump).expect("writable");
}
