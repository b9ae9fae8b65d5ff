//! A program with a reporter that measures pointers without a block. Usage: `faults REPORT DUMP`. The program writes
//! the reports and warnings of a collection into `REPORT`, and a dump into `DUMP` if DMD records.

use std::alloc::{Layout, System};
use std::sync::atomic::{AtomicPtr, Ordering};

use memory_reporter::{CollectOptions, MemoryReporter, Reports, collect_reports, file, register_reporter};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

/// Blocks of this size are separate mappings. If the C library gets such a block after it was freed, it reads memory
/// that is not mapped any more.
const LARGE: usize = 1 << 20;

static TEXT: [u8; 4096] = [1; 4096];
static BLOCK: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static FREED: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

struct Faulty;
register_reporter!(Faulty);

impl MemoryReporter for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn collect_reports(&self, out: &mut Reports) {
        let block = BLOCK.load(Ordering::Relaxed).cast_const();
        measure(out, "explicit/faulty/good", block);
        measure(out, "explicit/faulty/interior", block.wrapping_add(64));
        measure(out, "explicit/faulty/interior", block.wrapping_add(128));
        measure(out, "explicit/faulty/static", TEXT.as_ptr());
        measure(out, "explicit/faulty/freed", FREED.load(Ordering::Relaxed).cast_const());
    }
}

/// Breaks the contract of `block`: the pointer may have no block. Only DMD's table prevents a crash.
fn measure(out: &mut Reports, path: &str, pointer: *const u8) {
    let layout = Layout::new::<[u8; LARGE]>();
    // SAFETY: with DMD, the reading calls the allocator only for blocks in DMD's table.
    out.heap_with(
        path,
        |ops| unsafe { ops.block(pointer, layout) },
        "Memory that a faulty reporter measures.",
    );
}

fn main() {
    let [report, dump] = [1, 2].map(|nth| std::env::args_os().nth(nth).expect("two files"));
    assert!(dmd::is_running(), "without DMD, the reporter crashes");
    BLOCK.store(Box::leak(vec![1_u8; LARGE].into_boxed_slice()).as_mut_ptr(), Ordering::Relaxed);
    let mut freed = vec![1_u8; 3 * LARGE];
    FREED.store(freed.as_mut_ptr(), Ordering::Relaxed);
    drop(freed);
    file::write(report, &collect_reports(&CollectOptions::new())).expect("writable");
    dmd::report_and_dump(dump).expect("writable");
}
