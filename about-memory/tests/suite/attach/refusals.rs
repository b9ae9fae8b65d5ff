//! Processes that cannot be attached to: each gets one line with the reason, and stays as it was.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::{Victim, about_memory, attach, succeed, victim};
use crate::run::{compile, libdmd};

/// The line with which the command fails.
fn refused(folder: &Path, pid: &str) -> String {
    let output = about_memory(folder, &["attach", pid, "--library", libdmd().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().to_owned()
}

#[test]
fn a_missing_process_a_thread_and_a_name() {
    let folder = tempfile::tempdir().unwrap();
    assert!(refused(folder.path(), "4194304").ends_with("no process has this number"));
    assert!(
        refused(folder.path(), "no-such-name")
            .ends_with("no process of this user has this name; use a process id")
    );
    let mut victim = Victim::start(&mut victim(folder.path()));
    assert_eq!(victim.line(), "ready");
    let tasks = fs::read_dir(format!("/proc/{}/task", victim.pid())).unwrap();
    let mut numbers = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
    let thread = numbers.find(|number| *number != victim.pid()).unwrap();
    let text = refused(folder.path(), &thread);
    assert!(text.contains(&format!("attach to {}", victim.pid())), "{text}");
    victim.end();
}

#[test]
fn a_stopped_and_an_ended_process() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(victim(folder.path()).arg("counts"));
    victim.signal(Signal::STOP);
    while !fs::read_to_string(format!("/proc/{}/stat", victim.pid())).unwrap().contains(") T ") {}
    assert!(refused(folder.path(), &victim.pid()).contains("kill -CONT"));
    victim.signal(Signal::CONT);
    victim.signal(Signal::KILL);
    while !fs::read_to_string(format!("/proc/{}/stat", victim.pid())).unwrap().contains(") Z ") {}
    assert!(refused(folder.path(), &victim.pid()).contains("has ended, and its parent"));
}

#[test]
fn a_static_program() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n";
    compile(folder.path(), "static", source, &["-static"]);
    let victim = Victim::start(&mut Command::new(folder.path().join("static")));
    let text = refused(folder.path(), &victim.pid());
    assert!(text.contains("is statically linked") && text.contains("dmd::Dmd"), "{text}");
}

#[test]
fn a_traced_process() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int child = fork();
    if (child == 0) for (;;) pause();
    ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_EXITKILL);
    printf(\"%d\\n\", child);
    fflush(stdout);
    for (;;) pause();
}
";
    compile(folder.path(), "traces", source, &["-w"]);
    let mut victim = Victim::start(&mut Command::new(folder.path().join("traces")));
    let text = refused(folder.path(), &victim.line());
    assert!(text.contains(&format!("process {} traces it", victim.pid())), "{text}");
}

/// The filter that the program has installed may end it at an attachment, so the user must pass `--with-filter`.
#[test]
fn a_program_with_a_filter_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) {
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {1, allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    printf(\"ready\\n\");
    fflush(stdout);
    for (;;) usleep(1000), free(malloc(100));
}
";
    compile(folder.path(), "filters", source, &["-w"]);
    let mut victim = Victim::start(&mut Command::new(folder.path().join("filters")));
    assert_eq!(victim.line(), "ready");
    let text = refused(folder.path(), &victim.pid());
    assert!(text.contains("--with-filter"), "{text}");
    attach(folder.path(), &victim.pid(), &["--with-filter"]);
    succeed(folder.path(), &["detach", &victim.pid()]);
}

/// A filter that the program has installed since the attachment may end it at the calls of `detach`.
#[test]
fn a_filter_since_the_attachment() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
int main(void) {
    struct sock_filter writes[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigtimedwait, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog filter = {6, writes};
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    printf(\"ready\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    printf(\"filters\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    return 0;
}
";
    compile(folder.path(), "filters", source, &["-w"]);
    let mut victim = Victim::start(&mut Command::new(folder.path().join("filters")));
    assert_eq!(victim.line(), "ready");
    attach(folder.path(), &victim.pid(), &[]);
    victim.signal(Signal::USR1);
    assert_eq!(victim.line(), "filters");
    let output = about_memory(folder.path(), &["detach", &victim.pid()]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("it stays attached"), "{text}");
    assert!(fs::read_to_string(format!("/proc/{}/status", victim.pid())).unwrap().contains("State:\tS"));
}

/// A process with the preloaded library needs no attachment: `attach` prints this and succeeds. A second attachment to
/// a process is refused.
#[test]
fn a_process_with_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let preloaded = victim(folder.path())
        .arg("counts")
        .env("LD_PRELOAD", libdmd())
        .env("DMD", "--quiet")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut preloaded = preloaded;
    let text = attach(folder.path(), &preloaded.id().to_string(), &[]);
    assert!(text.contains("was loaded when the process started"), "{text}");
    preloaded.kill().unwrap();
    preloaded.wait().unwrap();

    let plain = Victim::start(victim(folder.path()).arg("counts"));
    let text = String::from_utf8(about_memory(folder.path(), &["detach", &plain.pid()]).stderr).unwrap();
    assert!(text.contains("is not attached to"), "{text}");
    attach(folder.path(), &plain.pid(), &[]);
    assert!(refused(folder.path(), &plain.pid()).contains("is attached to already"));
    plain.end();
}
