//! Blocks from before the attachment: the allocator's own structures have their places, and pointers their types.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Victim, about_memory, attach, succeed};
use crate::run::compile;

/// Runs `heap types` for a process. Returns its table and its notes.
fn types(folder: &Path, pid: &str) -> (String, String) {
    let output = about_memory(folder, &["heap", "types", pid]);
    assert!(output.status.success(), "{output:?}");
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn older_blocks_have_types() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::{Arc, Mutex};
pub struct Session { pub id: u64, pub name: String, pub parts: Vec<[u64; 3]>, pub flags: u16 }
pub static SESSIONS: Mutex<Vec<Box<Session>>> = Mutex::new(Vec::new());
pub static BY_NAME: Mutex<BTreeMap<u64, Arc<Session>>> = Mutex::new(BTreeMap::new());
pub static TABLE: Mutex<Option<HashMap<u64, Box<u32>>>> = Mutex::new(None);
fn session(id: u64) -> Session {
    Session { id, name: \"n\".repeat(10 + id as usize % 50), parts: vec![[id; 3]; 1 + id as usize % 9], flags: 7 }
}
fn more(count: u64) {
    SESSIONS.lock().unwrap().extend((0..count).map(|id| Box::new(session(id))));
    BY_NAME.lock().unwrap().extend((0..count).map(|id| (id, Arc::new(session(id)))));
}
fn main() {
    more(600);
    // Free blocks of all kinds between those in use.
    let mut sessions = SESSIONS.lock().unwrap();
    let mut at = 0;
    sessions.retain(|_| { at += 1; at % 6 != 0 });
    drop(sessions);
    *TABLE.lock().unwrap() = Some((0..100).map(|id| (id, Box::new(id as u32))).collect());
    println!(\"ready\");
    let mut byte = [0];
    std::io::stdin().read_exact(&mut byte).unwrap();
    more(70); // The map replaces 70 values.
    println!(\"done\");
    std::io::stdin().read_exact(&mut byte).unwrap_err();
}
";
    fs::write(folder.path().join("older.rs"), source).unwrap();
    let mut compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compiler
        .args(["--edition=2024", "-Copt-level=1", "-Cdebuginfo=2", "older.rs"])
        .current_dir(folder.path());
    assert!(compiler.status().unwrap().success());
    let mut victim = Victim::start(Command::new(folder.path().join("older")).stdin(Stdio::piped()));
    assert_eq!(victim.line(), "ready");
    attach(folder.path(), &victim.pid(), &[]);
    let (table, notes) = types(folder.path(), &victim.pid());
    assert!(notes.contains("are from before the attachment; only pointers determine their types"), "{notes}");
    let has = |table: &str, rows: &[&str]| {
        rows.iter().for_each(|row| assert!(table.contains(row), "no {row}:\n{table}"));
    };
    has(
        &table,
        &["  500 blocks  older::Session\n", "  600 blocks  ArcInner<older::Session>\n", " 100 blocks  u32\n"],
    );
    has(&table, &["  1100 blocks  [[u64; 3]]\n", "  1100 blocks  str\n"]);
    victim.child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    assert_eq!(victim.line(), "done");
    let (table, _) = types(folder.path(), &victim.pid());
    has(&table, &["  570 blocks  older::Session\n", "  600 blocks  ArcInner<older::Session>\n"]);
    succeed(folder.path(), &["detach", &victim.pid()]);
    drop(victim.child.stdin.take());
    assert!(victim.child.wait().unwrap().success());
}

/// The number of blocks and their bytes in the note of `heap types`.
fn older(folder: &Path, program: &Path, blocks: &str) -> u64 {
    let mut victim = Victim::start(Command::new(program).arg(blocks));
    assert_eq!(victim.line(), "ready");
    attach(folder, &victim.pid(), &[]);
    let (_, notes) = types(folder, &victim.pid());
    let line = notes.lines().find(|line| line.contains("are from before the attachment")).expect(&notes);
    let count =
        line.split(": ").nth(2).and_then(|rest| rest.split(' ').next()).and_then(|count| count.parse().ok());
    let count = count.unwrap_or_else(|| panic!("{line}"));
    succeed(folder, &["detach", &victim.pid()]);
    victim.end();
    count
}

/// Blocks in the main heap, in heaps of threads, and with mappings of their own; free blocks in all caches.
#[test]
fn all_older_blocks_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int count, ends;
static void *kept[3][10000];
static void make(void **kept) {
    for (int i = 0; i < count; i++) kept[i] = malloc(i * 7 % 3000);
    for (int i = 0; i < count; i += 3) free(kept[i]), kept[i] = 0;
    if (count > 0) kept[0] = malloc(1 << 20);
}
static void *works(void *argument) {
    free(malloc(10));
    make(kept[(size_t)argument]);
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) usleep(1000);
    return argument;
}
int main(int arguments, char **words) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    count = atoi(words[1]);
    free(malloc(10)); // An empty cache of a thread would count as a block.
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) pthread_create(&threads[i], 0, works, (void *)(i + 1));
    make(kept[0]);
    usleep(200000);
    printf(\"ready\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    __atomic_store_n(&ends, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
";
    compile(folder.path(), "many", source, &["-O1", "-w", "-pthread", "-g", "-fno-builtin"]);
    let program = folder.path().join("many");
    // Of 9000 blocks 6000 stay in each of three heaps, and one with a mapping of its own.
    let [few, many] = ["0", "9000"].map(|blocks| older(folder.path(), &program, blocks));
    // The C library has some blocks of its own, for example for a folder that it reads.
    assert!((many - few).abs_diff(3 * 6001) <= 2, "{many} - {few}");
}
