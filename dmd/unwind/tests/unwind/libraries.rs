//! Libraries that are loaded and unloaded: the walker must not use the rules of one library for another library at the
//! same address.

use crate::c_library::{Library, build};
use crate::check::{check, checked};
use crate::random_stacks::{Script, next};
use dmd_unwind::{WalkEnd, capture_here, compiled_rules, module_both_ways};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets the tests here run one at a time, even if all tests run in one process. A thread that opens a library waits
/// until no thread is inside `dl_iterate_phdr`. During this wait it holds the lock that every new thread takes.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The source of a library whose only function has a frame of this size. The libraries differ only in this size.
fn source(size: usize) -> String {
    format!(
        "__asm__(\".text\\n.globl pass\\n.type pass, @function\\npass:\\n.cfi_startproc\\n\"
         \"sub ${size}, %rsp\\n.cfi_adjust_cfa_offset {size}\\n\"
         \"mov %rdx, %rdi\\nmov %rsi, %rax\\ncall *%rax\\n\"
         \"add ${size}, %rsp\\n.cfi_adjust_cfa_offset -{size}\\nret\\n.cfi_endproc\\n.size pass, . - pass\\n\"
         \".section .note.GNU-stack,\\\"\\\",@progbits\\n\");"
    )
}

fn libraries(folder: &Path, option: &str) -> Vec<PathBuf> {
    [24, 40, 56, 72, 88, 104]
        .iter()
        .map(|&size| build(folder, &format!("frame{size}"), &source(size), &["-O1", option]))
        .collect()
}

/// Loads, walks through, and unloads one library after another. Returns how often a library was loaded at the address
/// of an earlier library.
fn come_and_go(paths: &[PathBuf]) -> usize {
    let mut last_at: HashMap<usize, usize> = HashMap::new();
    let mut replaced = 0;
    for round in 0..200 {
        let index = (round * 7 + round / 6) % paths.len();
        let library = Library::open(&paths[index]);
        let pass = library.pass();
        let mut script = Script::new(1, 0, &[], check);
        for _ in 0..3 {
            pass(0 as c_int, next, (&raw mut script).cast::<c_void>());
        }
        let before = last_at.insert(library.symbol("pass").addr(), index);
        replaced += usize::from(before.is_some_and(|before| before != index));
        library.close();
    }
    replaced
}

#[test]
fn at_the_same_address_with_build_ids() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let replaced = come_and_go(&libraries(folder.path(), "-Wl,--build-id=sha1"));
    assert_eq!(checked().0, 600);
    assert!(replaced > 20, "{replaced}");
}

#[test]
fn at_the_same_address_without_build_ids() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let replaced = come_and_go(&libraries(folder.path(), "-Wl,--build-id=none"));
    assert_eq!(checked().0, 600);
    assert!(replaced > 20, "{replaced}");
}

#[test]
fn while_other_threads_walk() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let paths = libraries(folder.path(), "-Wl,--build-id=sha1");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let paths = &paths;
            scope.spawn(move || {
                for round in 0..100 {
                    let library = Library::open(&paths[(round + thread) % paths.len()]);
                    let mut script = Script::new(1, 0, &[], check);
                    library.pass()(0, next, (&raw mut script).cast());
                    library.close();
                }
                assert_eq!(checked().0, 100);
            });
        }
    });
}

/// Walks in constructors and destructors, which run while the loader works.
#[test]
fn inside_of_dlopen_and_dlclose() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let hook = hook as *const () as usize;
    let source = format!(
        "static void (*const hook)(void) = (void (*)(void)){hook:#x}UL;
        __attribute__((constructor)) static void enter(void) {{ hook(); __asm__(\"\"); }}
        __attribute__((destructor)) static void leave(void) {{ hook(); __asm__(\"\"); }}"
    );
    let path = build(folder.path(), "constructor", &source, &["-O2"]);
    for _ in 0..20 {
        Library::open(&path).close();
    }
    assert_eq!(checked().0, 40);
}

/// While this thread is inside the loader and holds its lock, another thread walks through code that is new to the
/// walker.
#[test]
fn while_the_loader_is_locked() {
    let _alone = alone();
    unsafe extern "C" fn visit(_: *mut libc::dl_phdr_info, _: usize, library: *mut c_void) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes the pointer to the library below, which outlives the call.
        let library = unsafe { &*library.cast::<Library>() };
        let pass = library.pass();
        let thread = std::thread::spawn(move || {
            let mut script = Script::new(1, 0, &[], walk_only);
            pass(0, next, (&raw mut script).cast());
        });
        thread.join().unwrap();
        1
    }
    fn walk_only() {
        let (len, end) = capture_here(&mut [0; 64]);
        assert!(len > 5);
        assert_eq!(end, WalkEnd::Complete);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), "locked", &source(120), &["-O1"]);
    let library = Library::open(&path);
    // SAFETY: `visit` has the type of a callback, and its argument, the library, outlives the call.
    let result = unsafe { libc::dl_iterate_phdr(Some(visit), (&raw const library).cast_mut().cast()) };
    assert_eq!(result, 1);
}

#[test]
fn modules_are_found_alike_in_both_ways() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let library = Library::open(&build(folder.path(), "found", &source(24), &["-O1"]));
    let far = ["-O1", "-Wl,-z,separate-code", "-Wl,-z,max-page-size=0x200000"];
    let with_gaps = Library::open(&build(folder.path(), "far", &source(24), &far));
    let addresses = [
        with_gaps.pass() as *const () as usize,
        hook as *const () as usize,
        libc::qsort as *const () as usize,
        library.pass() as *const () as usize,
        // SAFETY: the function has no precondition.
        unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize + 64,
    ];
    for address in addresses {
        let [quick, locked] = module_both_ways(address).map(Option::unwrap);
        // The two results may end at different places in the last page.
        let in_pages = |[start, end, header]: [usize; 3]| (start, end.next_multiple_of(4096), header);
        assert_eq!(in_pages(quick), in_pages(locked), "{address:#x}");
    }
    assert_eq!(module_both_ways(&raw const folder as usize), [None, None]);
}

extern "C" fn hook() {
    check();
}

/// The walker keeps the rules of new libraries after thousands of earlier libraries, each at a different address.
#[test]
fn of_which_there_are_thousands() {
    let _alone = alone();
    fn walk_only() {
        let (len, end) = capture_here(&mut [0; 64]);
        assert!(len > 5);
        assert_eq!(end, WalkEnd::Complete);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), "many", &source(136), &["-O1", "-Wl,--build-id=sha1"]);
    let mut places = std::collections::HashSet::new();
    for round in 0..5000 {
        let library = Library::open(&path);
        let pass = library.pass();
        places.insert(library.symbol("pass").addr());
        let walk = || {
            let mut script = Script::new(1, 0, &[], walk_only);
            pass(0 as c_int, next, (&raw mut script).cast::<c_void>());
        };
        // Other tests may compile rules during these tries.
        let compiles_none = (0..50).any(|_| {
            let before = compiled_rules();
            walk();
            compiled_rules() == before
        });
        assert!(compiles_none, "round {round}");
        library.close();
        // SAFETY: the kernel chooses a free place for a new mapping. The mapping prevents the loader from putting the
        // next library there.
        let taken = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(taken, libc::MAP_FAILED);
    }
    assert!(places.len() > 4500, "{}", places.len());
}
