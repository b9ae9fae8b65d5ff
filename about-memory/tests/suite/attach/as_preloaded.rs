//! After an attachment, a process behaves like one that was started with the library.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use super::{Victim, attach, counted, dump, succeed};
use crate::recordings::stdout;
use crate::run::{compile, libdmd};

/// On SIGUSR1, the program allocates by all functions of the C library. Sizes from 9000 on are only of blocks since then;
/// the number of live ones is beside each line.
const ALLOCATES: &str = "
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *older[20], *kept[200];
static int count;
static void keep(void *block) { kept[count++] = block; }
static void *works(void *argument) {
    for (int i = 0; i < 10; i++) keep(malloc(9100 + i));            // 10
    for (int i = 0; i < 10; i++) free(malloc(9200 + i));            // 0
    return argument;
}
int main(void) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    for (int i = 0; i < 20; i++) older[i] = malloc(8000 + i);
    printf(\"ready\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    if (signal == SIGUSR2) return 0;
    for (int i = 0; i < 10; i++) free(older[i]);                    // 0
    for (int i = 10; i < 15; i++) keep(realloc(older[i], 9300 + i)); // 5
    for (int i = 0; i < 7; i++) keep(malloc(9000));                 // 7
    for (int i = 0; i < 3; i++) keep(calloc(91, 101));              // 3 of 9191
    for (int i = 0; i < 4; i++) keep(realloc(malloc(9400), 9500));  // 4
    for (int i = 0; i < 2; i++) keep(realloc(calloc(1, 200000), 9600)); // 2
    for (int i = 0; i < 6; i++) keep(aligned_alloc(64, 9664));      // 6
    for (int i = 0; i < 6; i++) keep(memalign(4096, 9700));         // 6
    for (int i = 0; i < 5; i++) keep(reallocarray(0, 3, 3301));     // 5 of 9903
    for (int i = 0; i < 2; i++) {
        void *block;
        posix_memalign(&block, 256, 9800);
        keep(block);                                                // 2
    }
    char text[9950];
    memset(text, 'x', sizeof text);
    text[9949] = 0;
    for (int i = 0; i < 3; i++) keep(strdup(text));                 // 3 of 9950
    for (int i = 0; i < 2; i++) keep(malloc(300000));               // 2, mapped
    free(kept[5]);                                                  // 6 of 9000
    pthread_t thread;
    pthread_create(&thread, 0, works, 0);
    pthread_join(thread, 0);
    printf(\"done\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    return 0;
}
";

/// The number of blocks by their requested and unused bytes.
type BlocksBySize = BTreeMap<(u64, u64), u64>;

fn since(dump: &Value) -> BlocksBySize {
    let mut blocks = BlocksBySize::new();
    for block in dump["blockList"].as_array().unwrap() {
        let number = |key: &str| block[key].as_u64();
        if let Some(requested) = number("req").filter(|bytes| *bytes >= 9000) {
            assert!(block["alloc"].is_string(), "a block without a stack: {block}");
            *blocks.entry((requested, number("slop").unwrap_or(0))).or_default() +=
                number("num").unwrap_or(1);
        }
    }
    blocks
}

/// Lets the program allocate, and returns its blocks.
fn blocks_of(folder: &Path, victim: &mut Victim) -> BlocksBySize {
    victim.signal(Signal::USR1);
    assert_eq!(victim.line(), "done");
    succeed(folder, &["save", "--dump", &victim.pid(), "d.json.gz"]);
    since(&dump(&folder.join("d.json.gz")))
}

#[test]
fn a_dump_has_the_blocks_of_a_preloaded_run() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "allocates", ALLOCATES, &["-O1", "-w", "-pthread", "-fno-builtin"]);
    let program = || Command::new(folder.path().join("allocates"));
    let mut preloaded = program();
    preloaded.env("LD_PRELOAD", libdmd()).env("DMD", "--mode=live --stacks=full --quiet");
    preloaded.env("ABOUT_MEMORY", "listen").env("XDG_RUNTIME_DIR", folder.path());
    let mut preloaded = Victim::start(&mut preloaded);
    assert_eq!(preloaded.line(), "ready");
    let expected = blocks_of(folder.path(), &mut preloaded);
    preloaded.end();

    let mut victim = Victim::start(&mut program());
    assert_eq!(victim.line(), "ready");
    attach(folder.path(), &victim.pid(), &[]);
    let found = blocks_of(folder.path(), &mut victim);
    assert_eq!(found, expected);
    assert_eq!(found.values().sum::<u64>(), 5 + 6 + 3 + 4 + 2 + 6 + 6 + 5 + 2 + 3 + 2 + 10);
    let text = succeed(folder.path(), &["detach", &victim.pid()]);
    assert!(text.contains("the process freed 15 blocks from before"), "{text}");
    victim.end();
}

/// Sends a request to a server, and returns the body of the answer.
fn ask(url: &str, path: &str) -> Value {
    let (origin, token) = url.split_once("/#token=").unwrap();
    let host = origin.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// The commands that ask a process work, by its number and by its name, and again after a detachment.
#[test]
fn commands_ask_an_attached_process() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("asked-{}", std::process::id());
    // A file of this name beside the commands would be meant instead of the process.
    let programs = tempfile::tempdir().unwrap();
    compile(programs.path(), &name, ALLOCATES, &["-O1", "-w", "-pthread", "-fno-builtin"]);
    let mut victim = Victim::start(&mut Command::new(programs.path().join(&name)));
    assert_eq!(victim.line(), "ready");
    let pid = victim.pid();
    attach(folder.path(), &name, &[]);
    victim.signal(Signal::USR1);
    assert_eq!(victim.line(), "done");
    for process in [&pid, &name] {
        let output = super::about_memory(folder.path(), &["show", process]);
        assert!(output.status.success(), "{output:?}");
        succeed(folder.path(), &["save", "--dump", process, "d.json.gz"]);
    }
    let output = super::about_memory(folder.path(), &["list"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&pid), "{text}");
    let file = folder.path().join("d.json.gz");
    let text = stdout(&["show", file.to_str().unwrap()]);
    assert!(text.contains("main"), "{text}");
    let text = succeed(folder.path(), &["show", "d.json.gz"]);
    assert!(text.contains("blocks from before the attachment are not shown"), "{text}");

    let mut server = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["serve", &pid, "--no-open", "--json"])
        .env("XDG_RUNTIME_DIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = serde_json::from_str::<Value>(&line).unwrap()["url"].as_str().unwrap().to_owned();
    let processes = ask(&url, "/api/processes");
    let all = processes["processes"].as_array().unwrap();
    let number: u64 = pid.parse().unwrap();
    assert!(all.iter().any(|process| process["pid"] == number), "{processes}");
    server.kill().unwrap();
    server.wait().unwrap();

    succeed(folder.path(), &["detach", &name]);
    let output = super::about_memory(folder.path(), &["save", "--dump", &pid, "none.json.gz"]);
    assert!(!output.status.success() && !folder.path().join("none.json.gz").exists(), "{output:?}");
    attach(folder.path(), &pid, &["--sample-bytes", "4KiB"]);
    succeed(folder.path(), &["save", "--dump", &pid, "s.json.gz"]);
    assert!(dump(&folder.path().join("s.json.gz"))["sampling"].is_object());
    succeed(folder.path(), &["detach", &pid]);
    victim.end();
}

/// An allocator that is linked into a program with several threads, without a word that the linker keeps for its
/// functions: only code refers to them.
#[test]
fn an_allocator_in_a_program_with_threads() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char all[64 << 20];
static size_t used;
void _mi_marker(void) {}
__attribute__((noinline)) void *mi_malloc(size_t bytes) {
    return all + __atomic_fetch_add(&used, (bytes + 31) & ~(size_t)15, __ATOMIC_RELAXED);
}
__attribute__((noinline)) void mi_free(void *block) { __asm__ volatile(\"\" : : \"r\"(block) : \"memory\"); }
static int ends;
static void *works(void *argument) {
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 20; i++) mi_free(mi_malloc(100));
        usleep(1000);
    }
    return argument;
}
int main(void) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, works, 0);
    printf(\"ready\\n\");
    fflush(stdout);
    void *blocks[10];
    for (;;) {
        sigwait(&set, &signal);
        if (signal == SIGUSR2) break;
        for (int i = 0; i < 10; i++) blocks[i] = mi_malloc(7001);
        for (int i = 0; i < 6; i++) mi_free(blocks[i]);
        printf(\"done\\n\");
        fflush(stdout);
    }
    __atomic_store_n(&ends, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
";
    compile(folder.path(), "linked", source, &["-O1", "-w", "-pthread", "-fno-builtin"]);
    let mut victim = Victim::start(&mut Command::new(folder.path().join("linked")));
    assert_eq!(victim.line(), "ready");
    // The hooks in code stay after a detachment, and record nothing.
    for _ in 0..3 {
        let text = attach(folder.path(), &victim.pid(), &[]);
        assert!(text.contains("mimalloc inside the program: its blocks are recorded, too"), "{text}");
        victim.signal(Signal::USR1);
        assert_eq!(victim.line(), "done");
        succeed(folder.path(), &["save", "--dump", &victim.pid(), "d.json.gz"]);
        let dump = dump(&folder.path().join("d.json.gz"));
        assert_eq!(counted(&dump), 4);
        assert_eq!(dump["dropped"]["frees"], Value::Null);
        let others = dump["blockList"].as_array().unwrap().iter().filter(|block| block["req"] == 100);
        let others: u64 = others.map(|block| block["num"].as_u64().unwrap_or(1)).sum();
        assert!(others <= 4, "each thread has at most one: {others}");
        succeed(folder.path(), &["detach", &victim.pid()]);
    }
    fs::remove_file(folder.path().join("d.json.gz")).unwrap();
    victim.end();
}
