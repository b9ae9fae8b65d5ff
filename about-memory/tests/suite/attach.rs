//! `about-memory attach` and `about-memory detach`, with programs that run already.

mod allocators;
mod as_preloaded;
mod environments;
mod older_blocks;
mod refusals;
mod rounds;
mod stops;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::run::{compile, libdmd};

/// The program `tests/torture/attached.c` of the crate dmd: with an argument, it counts its blocks.
const VICTIM: &str = include_str!("../../../dmd/tests/torture/attached.c");

/// A running program. It is killed when dropped.
struct Victim {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Victim {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Lets the program end, and returns the rest of its output. It must succeed.
    fn end(mut self) -> String {
        self.signal(Signal::USR2);
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        rest
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs about-memory with its sockets in the folder.
fn about_memory(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "120", env!("CARGO_BIN_EXE_about-memory")]).args(arguments);
    command.current_dir(folder).env("XDG_RUNTIME_DIR", folder).env_remove("DMD").env_remove("LD_PRELOAD");
    command.stdin(Stdio::null()).output().unwrap()
}

fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = about_memory(folder, arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

fn attach(folder: &Path, pid: &str, arguments: &[&str]) -> String {
    let library = libdmd().to_str().unwrap();
    succeed(folder, &[&["attach", pid, "--library", library], arguments].concat())
}

fn victim(folder: &Path) -> Command {
    compile(folder, "victim", VICTIM, &["-O1", "-w", "-pthread", "-ldl"]);
    Command::new(folder.join("victim"))
}

fn dump(path: &Path) -> Value {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// The number of blocks of the size that only the victim has.
fn counted(dump: &Value) -> u64 {
    let blocks = dump["blockList"].as_array().unwrap().iter().filter(|block| block["req"] == 7001);
    blocks.map(|block| block["num"].as_u64().unwrap_or(1)).sum()
}

/// After each of two attachments, the dump has exactly the blocks that the program has allocated since the attachment.
#[test]
fn an_attached_process_is_recorded_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::start(victim(folder.path()).arg("counts"));
    for round in 0..2 {
        let text = attach(folder.path(), &victim.pid(), &[]);
        assert!(text.contains("before attach: ") && text.contains("in use, as malloc counts"), "{text}");
        if round > 0 {
            victim.signal(Signal::USR1);
            assert_eq!(victim.line(), "goes on");
        }
        victim.signal(Signal::USR1);
        assert_eq!(victim.line(), "live 4096 28676096");
        succeed(folder.path(), &["save", "--dump", &victim.pid(), "d.json.gz"]);
        assert_eq!(counted(&dump(&folder.path().join("d.json.gz"))), 4096, "round {round}");
        let text = succeed(folder.path(), &["detach", &victim.pid()]);
        assert!(text.contains("references restored"), "{text}");
        // The program has freed blocks that are older than the attachment.
        assert!(text.contains("the process freed ") && text.contains(" from before"), "{text}");
    }
    assert_eq!(victim.end(), "");
}

/// `track`, recordings and samples work after an attachment, and each attachment may have other options.
#[test]
fn attachments_wait_for_track_record_and_sample() {
    let folder = tempfile::tempdir().unwrap();
    let own_name = format!("victim-{}", std::process::id());
    compile(folder.path(), &own_name, VICTIM, &["-O1", "-w", "-pthread", "-ldl"]);
    let victim = Victim::start(Command::new(folder.path().join(&own_name)).arg("counts"));
    attach(folder.path(), &own_name, &["--wait-for-track"]);
    succeed(folder.path(), &["track", &victim.pid(), "--exact", "--seconds", "0.3", "-o", "t.json.gz"]);
    assert!(counted(&dump(&folder.path().join("t.json.gz"))) > 0);
    succeed(folder.path(), &["detach", &own_name]);

    attach(folder.path(), &victim.pid(), &["--record", "r.dmdrec"]);
    succeed(folder.path(), &["detach", &victim.pid()]);
    let output = about_memory(folder.path(), &["leaks", "r.dmdrec"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("The recording began while the program ran."), "{text}");

    attach(folder.path(), &victim.pid(), &["--sample-bytes", "64KiB"]);
    victim.signal(Signal::USR1);
    succeed(folder.path(), &["save", "--dump", &victim.pid(), "s.json.gz"]);
    let sampled = dump(&folder.path().join("s.json.gz"));
    assert!(sampled["sampling"].to_string().contains("65536"), "{}", sampled["sampling"]);
    victim.end();
}

/// An object loaded after the attachment frees blocks of the program, and the program frees blocks of the object.
#[test]
fn objects_loaded_later_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    compile(
        folder.path(),
        "later.so",
        "#include <stdlib.h>\nvoid *makes(void) { return malloc(7001); }\nvoid frees(void *block) { free(block); }\n",
        &["-shared", "-fPIC", "-O1"],
    );
    let source = "
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    printf(\"ready\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    void *library = dlopen(\"./later.so\", RTLD_LAZY);
    void *(*makes)(void) = dlsym(library, \"makes\");
    void (*frees)(void *) = dlsym(library, \"frees\");
    static void *kept[3];
    for (int i = 0; i < 3; i++) kept[i] = makes();
    for (int i = 0; i < 5; i++) frees(malloc(7001)), free(makes());
    printf(\"done\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    return 0;
}
";
    compile(folder.path(), "loads", source, &["-O1", "-w", "-ldl"]);
    let mut victim = Victim::start(Command::new("./loads").current_dir(folder.path()));
    assert_eq!(victim.line(), "ready");
    attach(folder.path(), &victim.pid(), &[]);
    victim.signal(Signal::USR1);
    assert_eq!(victim.line(), "done");
    succeed(folder.path(), &["save", "--dump", &victim.pid(), "d.json.gz"]);
    assert_eq!(counted(&dump(&folder.path().join("d.json.gz"))), 3);
    victim.end();
}

/// A function that runs for long keeps the addresses of `malloc` and `free` in registers or on its stack.
#[test]
fn addresses_in_registers_and_on_the_stack_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    void *(*makes)(size_t) = malloc;
    void (*frees)(void *) = free;
    // The compiler knows nothing of the values from here on.
    __asm__ volatile(\"\" : \"+r\"(makes), \"+r\"(frees));
    printf(\"ready\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    void *kept[10];
    for (int i = 0; i < 10; i++) kept[i] = makes(7001);
    for (int i = 0; i < 6; i++) frees(kept[i]);
    printf(\"done\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    return kept[9] == 0;
}
";
    compile(folder.path(), "keeps", source, &["-O2", "-w"]);
    let mut victim = Victim::start(&mut Command::new(folder.path().join("keeps")));
    assert_eq!(victim.line(), "ready");
    attach(folder.path(), &victim.pid(), &[]);
    victim.signal(Signal::USR1);
    assert_eq!(victim.line(), "done");
    succeed(folder.path(), &["save", "--dump", &victim.pid(), "d.json.gz"]);
    assert_eq!(counted(&dump(&folder.path().join("d.json.gz"))), 4);
    victim.end();
}
