//! Memory of known shapes. Usage: `resident FOLDER [CASE]`, with `DMD` and `LD_PRELOAD` set. Writes `FOLDER/dump.json`.
//! The cases are `unreadable` (the process may not read its page map), `many` (60,000 mappings), `full` (as many mappings
//! as the kernel allows), and `busy` (threads map and unmap memory while several dumps are written). Without a case, prints the expectation for each shape:
//!
//! - `block NAME REQUESTED COUNT RESIDENT SWAPPED`: blocks of a size, and their bytes in memory and in swap;
//! - `area NAME START BYTES RESIDENT SWAPPED`: a range of addresses that this program has mapped;
//! - `heap NAME START BYTES RESIDENT SWAPPED`: a range of the heap that `brk` extends;
//! - `stack NAME LEAST`: the stack of a thread, and its least resident bytes.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "tells the test")]

use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
/// The number of bytes before a block that the C library uses.
const HEAD: usize = 16;

fn page() -> usize {
    // SAFETY: the call changes nothing.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

fn map(bytes: usize, flags: i32, file: i32) -> *mut u8 {
    let access = libc::PROT_READ | if file < 0 { libc::PROT_WRITE } else { 0 };
    // SAFETY: a new mapping anywhere.
    let mapped = unsafe { libc::mmap(null_mut(), bytes, access, flags, file, 0) };
    assert_ne!(mapped, libc::MAP_FAILED);
    mapped.cast()
}

/// Writes a byte of each page.
fn write(start: *mut u8, bytes: usize) {
    for at in (0..bytes).step_by(page()) {
        // SAFETY: the caller owns these writable bytes.
        unsafe { start.wrapping_add(at).write_volatile(1) };
    }
}

/// Reads a byte of each page.
fn read(start: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(page()) {
        // SAFETY: the caller owns these readable bytes.
        black_box(unsafe { start.wrapping_add(at).read_volatile() });
    }
}

fn advise(start: *mut u8, bytes: usize, advice: i32) -> bool {
    // SAFETY: the range belongs to this program.
    unsafe { libc::madvise(start.cast(), bytes, advice) == 0 }
}

fn area(name: &str, start: *const u8, bytes: usize, resident: usize, swapped: usize) {
    println!("area {name} {} {bytes} {resident} {swapped}", start.addr());
}

/// A block that stays until the end of the process.
fn block(bytes: usize) -> *mut u8 {
    // SAFETY: the function has no precondition.
    let block = unsafe { libc::malloc(bytes) };
    assert!(!block.is_null());
    block.cast()
}

fn tell_block(name: &str, requested: usize, count: usize, resident: usize) {
    println!("block {name} {requested} {count} {resident} 0");
}

/// The bytes of a range in memory and in swap, from the kernel's page map. Used where the result depends on the
/// machine.
fn pages(start: *const u8, bytes: usize) -> (usize, usize) {
    let map = File::open("/proc/self/pagemap").unwrap();
    let (mut present, mut swapped) = (0, 0);
    for at in (0..bytes).step_by(page()) {
        let mut entry = [0; 8];
        map.read_exact_at(&mut entry, ((start.addr() + at) / page() * 8) as u64).unwrap();
        let entry = u64::from_ne_bytes(entry);
        present += usize::from(entry >> 63 & 1 == 1);
        swapped += usize::from(entry >> 62 & 1 == 1);
    }
    (present * page(), swapped * page())
}

/// Large blocks are mappings of their own: the words before the block touch its first page.
fn blocks() {
    let first = page() - HEAD;
    let bytes = 8 << 20;
    block(bytes + 1);
    tell_block("untouched", bytes + 1, 1, first);

    let half = block(4 << 20);
    write(half, 2 << 20);
    // The byte at 2 MiB is in the page behind the last written one.
    tell_block("half", 4 << 20, 1, (2 << 20) - HEAD);

    let zeros = block(3 << 20);
    read(zeros, 3 << 20);
    // A page that is only read is a page of zeros, and takes no memory.
    tell_block("read", 3 << 20, 1, first);

    for _ in 0..1000 {
        write(block(100), 100);
    }
    tell_block("small", 100, 1000, 1000 * 104);
}

fn mappings(folder: &Path) {
    let (page, mib) = (page(), 1 << 20);
    let half = map(4 * mib, PRIVATE, -1);
    write(half, 2 * mib);
    area("half", half, 4 * mib, 2 * mib, 0);

    let huge = map(1 << 30, PRIVATE | libc::MAP_NORESERVE, -1);
    for at in [0, 5, 100_000] {
        write(huge.wrapping_add(at * page), page);
    }
    area("noreserve", huge, 1 << 30, 3 * page, 0);

    let zeros = map(mib, PRIVATE, -1);
    read(zeros, mib);
    area("zeros", zeros, mib, 0, 0);

    let free = map(mib, PRIVATE, -1);
    write(free, mib);
    assert!(advise(free, mib, libc::MADV_FREE));
    area("free", free, mib, mib, 0);

    let given = map(mib, PRIVATE, -1);
    write(given, mib);
    assert!(advise(given, mib / 4, libc::MADV_DONTNEED));
    area("given-back", given, mib, mib * 3 / 4, 0);

    let file = File::create_new(folder.join("file")).unwrap();
    file.write_all_at(&vec![7; 16 * page], 0).unwrap();
    let file = File::open(folder.join("file")).unwrap();
    let mapped = map(16 * page, libc::MAP_PRIVATE, file.as_raw_fd());
    read(mapped, 16 * page);
    area("file", mapped, 16 * page, 16 * page, 0);

    let shared = map(mib, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
    write(shared, mib / 2);
    area("shared", shared, mib, mib / 2, 0);

    let moved = map(mib, PRIVATE, -1);
    write(moved, mib);
    // The addresses behind the mapping are in use, so the mapping must move when it grows.
    // SAFETY: the mapping belongs to this program, and `moved` is not used again.
    let moved = unsafe { libc::mremap(moved.cast(), mib, 3 * mib, libc::MREMAP_MAYMOVE) };
    assert_ne!(moved, libc::MAP_FAILED);
    area("moved", moved.cast(), 3 * mib, mib, 0);

    let (from, onto) = (map(8 * page, PRIVATE, -1), map(32 * page, PRIVATE, -1));
    write(from, 8 * page);
    write(onto, 32 * page);
    let place = onto.wrapping_add(8 * page);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: both mappings belong to this program, and `from` is not used again.
    let moved = unsafe { libc::mremap(from.cast(), 8 * page, 16 * page, flags, place) };
    assert_eq!(moved, place.cast());
    // Eight pages on both sides, and eight moved pages of sixteen.
    area("moved-onto", onto, 32 * page, 24 * page, 0);

    let left = map(8 * page, PRIVATE, -1);
    write(left, 8 * page);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
    // SAFETY: the mapping belongs to this program.
    let moved = unsafe { libc::mremap(left.cast(), 8 * page, 8 * page, flags, null_mut::<u8>()) };
    assert_ne!(moved, libc::MAP_FAILED);
    // The old addresses stay mapped, without their pages.
    area("moved-away", left, 8 * page, 0, 0);
    area("moved-pages", moved.cast(), 8 * page, 8 * page, 0);

    let kept = map(8 * page, PRIVATE, -1);
    write(kept, 8 * page);
    // SAFETY: the kernel refuses the length.
    assert_ne!(unsafe { libc::munmap(kept.cast(), 1 << 62) }, 0);
    // SAFETY: the kernel refuses a new length of 0.
    let refused = unsafe { libc::mremap(kept.cast(), 8 * page, 0, libc::MREMAP_MAYMOVE) };
    assert_eq!(refused, libc::MAP_FAILED);
    area("refused", kept, 8 * page, 8 * page, 0);

    let both = map(16 * page, PRIVATE, -1);
    write(both, 8 * page);
    let (place, flags) = (both.wrapping_add(8 * page), PRIVATE | libc::MAP_FIXED);
    // SAFETY: these pages belong to this program.
    let second = unsafe { libc::mmap(place.cast(), 8 * page, libc::PROT_READ, flags, -1, 0) };
    assert_eq!(second, place.cast());
    // SAFETY: the kernel refuses to resize two mappings at once.
    let refused = unsafe { libc::mremap(both.cast(), 16 * page, 32 * page, libc::MREMAP_MAYMOVE) };
    assert_eq!(refused, libc::MAP_FAILED);
    area("refused-both", both, 16 * page, 8 * page, 0);

    let cut = map(16 * page, PRIVATE, -1);
    write(cut, 16 * page);
    // SAFETY: these pages belong to this program, and are not used again.
    assert_eq!(unsafe { libc::munmap(cut.wrapping_add(4 * page).cast(), 4 * page) }, 0);
    area("cut-low", cut, 4 * page, 4 * page, 0);
    area("cut-high", cut.wrapping_add(8 * page), 8 * page, 8 * page, 0);

    let fixed = map(16 * page, PRIVATE, -1);
    write(fixed, 16 * page);
    let place = fixed.wrapping_add(8 * page);
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, PRIVATE | libc::MAP_FIXED);
    // SAFETY: these pages belong to this program.
    let again = unsafe { libc::mmap(place.cast(), 4 * page, access, flags, -1, 0) };
    assert_eq!(again, place.cast());
    area("fixed", fixed, 16 * page, 12 * page, 0);

    // Whether there is swap, and whether a huge page is free, depends on the machine.
    let out = map(mib, PRIVATE, -1);
    write(out, mib);
    advise(out, mib, libc::MADV_PAGEOUT);
    let (resident, swapped) = pages(out, mib);
    area("paged-out", out, mib, resident, swapped);

    // SAFETY: the call only allows huge pages.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0) };
    let place = map(4 * mib, PRIVATE, -1);
    let aligned = place.wrapping_add(place.align_offset(2 * mib));
    advise(aligned, 2 * mib, libc::MADV_HUGEPAGE);
    write(aligned, page);
    let (resident, swapped) = pages(aligned, 2 * mib);
    area("huge-page", aligned, 2 * mib, resident, swapped);
}

/// The heap that `brk` extends, in the hands of the program: it takes whole pages, and gives pages inside back.
fn heap() {
    let page = page();
    // SAFETY: the C library allows other callers of `sbrk`, and goes on behind their part.
    let end = unsafe { libc::sbrk(64 * page as isize) };
    assert_ne!(end.addr(), usize::MAX);
    let start = end.wrapping_byte_add(end.align_offset(page)).cast::<u8>();
    write(start, 32 * page);
    assert!(advise(start, 8 * page, libc::MADV_DONTNEED));
    println!("heap brk {} {} {} 0", start.addr(), 62 * page, 24 * page);
}

/// 60,000 mappings that the kernel cannot join: every second page has no access. The kernel allows 65,530.
fn many() {
    let page = page();
    let (all, flags) = (map(60_000 * page, PRIVATE, -1), PRIVATE | libc::MAP_FIXED);
    for at in (0..60_000).step_by(2) {
        let place = all.wrapping_add(at * page);
        // SAFETY: these pages belong to this program.
        let mapped = unsafe { libc::mmap(place.cast(), page, libc::PROT_NONE, flags, -1, 0) };
        assert_eq!(mapped, place.cast());
    }
    for at in (1..60_000).step_by(20) {
        write(all.wrapping_add(at * page), page);
    }
    area("many", all, 60_000 * page, 3_000 * page, 0);
}

/// Maps memory until the kernel refuses: then the dump has no room for its own lists either.
fn full(file: &Path) {
    let page = page();
    loop {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping anywhere.
        let mapped = unsafe { libc::mmap(null_mut(), 2 * page, access, PRIVATE, -1, 0) };
        // The kernel cannot join a mapping with its neighbors if its first half has another access.
        // SAFETY: if there is a mapping, it belongs to this program.
        if mapped == libc::MAP_FAILED || unsafe { libc::mprotect(mapped, page, libc::PROT_NONE) } != 0 {
            break;
        }
    }
    dmd::dump(file).unwrap();
}

/// Threads that map and unmap memory, and move borders between mappings, while dumps are written.
fn busy(folder: &Path) {
    static ENDS: AtomicBool = AtomicBool::new(false);
    let change = || {
        let page = page();
        while !ENDS.load(Ordering::Relaxed) {
            let mapped = map(64 * page, PRIVATE, -1);
            write(mapped, 32 * page);
            // SAFETY: these pages belong to this program, and nobody reads them.
            unsafe { libc::mprotect(mapped.wrapping_add(8 * page).cast(), 16 * page, libc::PROT_NONE) };
            // SAFETY: these pages belong to this program, and are not used again.
            assert_eq!(unsafe { libc::munmap(mapped.cast(), 64 * page) }, 0);
        }
    };
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(change)).collect();
    for dump in 0..20 {
        dmd::dump(folder.join(format!("busy-{dump}.json"))).unwrap();
    }
    ENDS.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Takes the right to read the page map from the process.
fn forbid_page_map() {
    const NOBODY: u32 = 65_534;
    // SAFETY: the call reads a number.
    if unsafe { libc::geteuid() } == 0 {
        // SAFETY: the call changes the user of the process, which has no other thread of the program.
        assert_eq!(unsafe { libc::setuid(NOBODY) }, 0);
    }
    // SAFETY: the call changes who may look at the process.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }, 0);
}

/// Touches a part of the stack.
#[inline(never)]
fn use_stack(bytes: usize) {
    let mut room = [0_u8; 16 << 10];
    write(black_box(&mut room).as_mut_ptr(), room.len());
    if bytes > room.len() {
        use_stack(bytes - room.len());
    }
    black_box(&room);
}

fn main() {
    let folder = std::env::args_os().nth(1).expect("a folder");
    // With huge pages, a written byte would take 2 MiB.
    // SAFETY: the call only forbids huge pages.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    match std::env::args().nth(2).as_deref() {
        Some("unreadable") => forbid_page_map(),
        Some("many") => many(),
        Some("full") => return full(&Path::new(&folder).join("dump.json")),
        Some("busy") => return busy(folder.as_ref()),
        Some(case) => panic!("{case}"),
        None => {
            blocks();
            mappings(folder.as_ref());
            heap();
        }
    }
    if std::env::args().nth(2).is_some() {
        return dmd::dump(Path::new(&folder).join("dump.json")).unwrap();
    }
    let (ready, is_ready) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let body = move || {
        use_stack(1 << 20);
        ready.send(()).unwrap();
        let _ = ends.recv();
    };
    let deep = thread::Builder::new().name("deep".to_owned()).stack_size(4 << 20).spawn(body).unwrap();
    is_ready.recv().unwrap();
    println!("stack deep {}", 1 << 20);
    dmd::dump(Path::new(&folder).join("dump.json")).unwrap();
    drop(end);
    deep.join().unwrap();
}
