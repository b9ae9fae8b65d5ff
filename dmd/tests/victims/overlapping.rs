//! Two runs of reporters at once: the second run starts in the middle of the first run. Usage, with `DMD`: `overlapping
//! FIRST SECOND FILE1 FILE2`, where a run is `report` or `dump`. The second run may also be `forked`, a report of a
//! child; `refused`, a dump that fails; or `clear`, which removes all marks.

use std::alloc::System;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use memory_reporter::{CollectOptions, MemoryReporter, Reports, collect_reports};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");
static WORDS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/words", Heap, &WORDS, "Memory used by words.");

/// The second run and its file; taken out when the run starts.
static SECOND: Mutex<Option<(String, PathBuf)>> = Mutex::new(None);

struct Meanwhile;
memory_reporter::register_reporter!(Meanwhile);

impl MemoryReporter for Meanwhile {
    /// The name is between the names of the other two reporters, which run in the order of their names.
    fn name(&self) -> &str {
        "explicit/queue"
    }

    fn collect_reports(&self, _: &mut Reports) {
        let second = SECOND.lock().expect("unpoisoned").take();
        if let Some((kind, path)) = second {
            std::thread::spawn(move || run(&kind, &path)).join().expect("the second run ends");
        }
    }
}

fn run(kind: &str, path: &Path) {
    match kind {
        "report" => {
            let reports = collect_reports(&CollectOptions::new());
            memory_reporter::file::write(path, &reports).expect("writable");
        }
        "dump" => dmd::report_and_dump(path).expect("a dump"),
        "forked" => forked(path),
        "refused" => {
            let error = dmd::report_and_dump(path).expect_err("the first dump is still being written");
            std::fs::write(path, error.to_string()).expect("writable");
        }
        _ => dmd::clear_reports(),
    }
}

/// The child has only this thread: the thread of the first run does not exist in the child.
fn forked(path: &Path) {
    // SAFETY: the child writes a report, which the library allows after a fork, and then ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        run("report", path);
        // SAFETY: the function has no precondition.
        unsafe { libc::_exit(0) };
    }
    let mut status = -1;
    // SAFETY: `status` is valid for a write.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, second, first_file, second_file] = &arguments[..] else { panic!("four arguments") };
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    *WORDS.lock().expect("unpoisoned") = vec![vec![0; 7_777]; 100];
    *SECOND.lock().expect("unpoisoned") = Some((second.clone(), second_file.into()));
    run(first, first_file.as_ref());
}
