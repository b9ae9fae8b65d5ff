//! Programs whose functions that allocate are not simply those of the C library, and programs that always allocate.

use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::process::Signal;

use super::{Victim, about_memory, attach, counted, dump, succeed};
use crate::run::{compile, libdmd};

/// A program that allocates 10 blocks and frees 6 of them on SIGUSR1, and ends on SIGUSR2.
const STEPS: &str = "
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void (*volatile frees)(void *) = free;
void *(*volatile makes)(size_t) = malloc;
int main(void) {
    sigset_t set;
    int signal;
    void *blocks[10];
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    for (int i = 0; i < 10; i++) blocks[i] = memset(malloc(7001), 255, 7001);
    printf(\"ready\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    if (signal == SIGUSR2) return 0;
    for (int i = 0; i < 10; i++) free(blocks[i]), blocks[i] = i % 2 ? malloc(7001) : makes(7001);
    for (int i = 0; i < 6; i++) i % 2 ? free(blocks[i]) : frees(blocks[i]);
    printf(\"done\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    return blocks[9] == 0;
}
";

/// An allocator without `malloc_usable_size`. It takes blocks from one array, and the words around a block are no sizes.
const ALLOCATOR: &str = "
#include <stddef.h>
#include <string.h>
static char room[16 << 20];
static size_t used;
void *malloc(size_t bytes) {
    size_t at = __atomic_fetch_add(&used, (bytes + 63) & ~(size_t)31, __ATOMIC_RELAXED);
    memset(room + at, 255, 32);
    *(size_t *)(room + at) = bytes;
    return room + at + 32;
}
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t bytes) { return memset(malloc(count * bytes), 0, count * bytes); }
void *realloc(void *block, size_t bytes) {
    void *moved = malloc(bytes);
    if (block) {
        size_t old = *(size_t *)((char *)block - 32);
        memcpy(moved, block, old < bytes ? old : bytes);
    }
    return moved;
}
";

/// Attaches to a program, lets it make its step, and checks that exactly the blocks that it keeps are recorded.
fn record_the_step(folder: &Path, program: &mut Command) {
    let mut victim = Victim::start(program);
    assert_eq!(victim.line(), "ready");
    attach(folder, &victim.pid(), &[]);
    victim.signal(Signal::USR1);
    assert_eq!(victim.line(), "done");
    succeed(folder, &["save", "--dump", &victim.pid(), "d.json.gz"]);
    assert_eq!(counted(&dump(&folder.join("d.json.gz"))), 4);
    let text = succeed(folder, &["detach", &victim.pid()]);
    assert!(text.contains("the process freed 10 blocks from before"), "{text}");
    victim.end();
}

/// A program at a fixed address has a stub of its own for each function whose address it takes.
#[test]
fn a_program_at_a_fixed_address() {
    let folder = tempfile::tempdir().unwrap();
    for (name, binding) in [("lazy", "-Wl,-z,lazy"), ("now", "-Wl,-z,now")] {
        compile(folder.path(), name, STEPS, &["-O1", "-w", "-no-pie", "-fno-pie", binding]);
        record_the_step(folder.path(), &mut Command::new(folder.path().join(name)));
    }
}

/// The program's allocator is in a library, and cannot tell the sizes of blocks.
#[test]
fn a_library_with_an_allocator() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "own.so", ALLOCATOR, &["-O1", "-w", "-shared", "-fPIC", "-fno-builtin"]);
    compile(folder.path(), "steps", STEPS, &["-O1", "-w"]);
    let mut program = Command::new(folder.path().join("steps"));
    record_the_step(folder.path(), program.env("LD_PRELOAD", folder.path().join("own.so")));
}

/// The program's allocator is in the program, and the program's calls do not leave it. While the program runs, a thread
/// may hold the allocator's locks.
#[test]
fn a_program_with_an_allocator() {
    let folder = tempfile::tempdir().unwrap();
    let waiting = format!("{ALLOCATOR}{STEPS}");
    compile(folder.path(), "waits", &waiting, &["-O1", "-w", "-fno-builtin"]);
    let mut victim = Victim::start(&mut Command::new(folder.path().join("waits")));
    assert_eq!(victim.line(), "ready");
    let text = attach(folder.path(), &victim.pid(), &[]);
    assert!(text.contains("the blocks of the program's own malloc are not recorded"), "{text}");
    victim.signal(Signal::USR1);
    assert_eq!(victim.line(), "done");
    succeed(folder.path(), &["detach", &victim.pid()]);
    victim.end();

    let running = format!("{ALLOCATOR}int main(void) {{ for (;;) free(0); }}\n");
    compile(folder.path(), "runs", &running, &["-O1", "-w", "-fno-builtin"]);
    let victim = Victim::start(&mut Command::new(folder.path().join("runs")));
    let arguments = ["attach", &victim.pid(), "--library", libdmd().to_str().unwrap()];
    let output = about_memory(folder.path(), &arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("the program's own malloc") && text.contains("nothing was changed"), "{text}");
}

/// A thread is nearly always in a function that allocates or frees, or in one of the library's.
#[test]
fn a_program_that_always_allocates() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
#include <signal.h>
#include <stdlib.h>
static volatile sig_atomic_t ends;
static void end(int signal) { ends = signal; }
int main(void) {
    static void *volatile blocks[64];
    signal(SIGUSR2, end);
    for (unsigned i = 0; !ends; i++) {
        free(blocks[i % 64]);
        blocks[i % 64] = malloc(i % 1000);
        for (volatile int j = 0; j < 100; j++) {}
    }
    return 0;
}
";
    compile(folder.path(), "busy", source, &["-O1", "-w"]);
    let victim = Victim::start(&mut Command::new(folder.path().join("busy")));
    for _ in 0..5 {
        attach(folder.path(), &victim.pid(), &["--record", "r.dmdrec"]);
        succeed(folder.path(), &["detach", &victim.pid()]);
        let output = about_memory(folder.path(), &["leaks", "r.dmdrec"]);
        assert!(output.status.success(), "{output:?}");
    }
    victim.end();
}

/// Of two attachments at the same time, one waits for the other, and finds it.
#[test]
fn two_attachments_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "steps", STEPS, &["-O1", "-w"]);
    let program = folder.path().join("steps");
    let mut victim = Victim::start(&mut Command::new(program));
    assert_eq!(victim.line(), "ready");
    let pid = victim.pid();
    let library = libdmd().to_str().unwrap();
    let outputs = thread::scope(|scope| {
        let start = || scope.spawn(|| about_memory(folder.path(), &["attach", &pid, "--library", library]));
        [start(), start()].map(|thread| thread.join().unwrap())
    });
    let succeeded = outputs.iter().filter(|output| output.status.success()).count();
    let refused = outputs
        .iter()
        .filter(|output| String::from_utf8_lossy(&output.stderr).contains("is attached to already"));
    assert_eq!((succeeded, refused.count()), (1, 1), "{outputs:?}");
    succeed(folder.path(), &["detach", &pid]);
    victim.end();
}
