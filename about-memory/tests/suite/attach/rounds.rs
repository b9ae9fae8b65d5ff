//! Attaches many times to one program. The program does everything that an attachment could disturb.

use std::env;
use std::process::Command;

use super::{Victim, attach, succeed, victim};

fn rounds() -> usize {
    if env::var_os("THOROUGH").is_some() { 1000 } else { 10 }
}

/// No system call of the program fails or ends early, and its forks, threads, signals and libraries work.
#[test]
fn a_busy_program_is_not_disturbed() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::start(&mut victim(folder.path()));
    assert_eq!(victim.line(), "ready");
    for _ in 0..rounds() {
        attach(folder.path(), &victim.pid(), &[]);
        succeed(folder.path(), &["detach", &victim.pid()]);
    }
    assert_eq!(victim.end(), "errors 0\n");
}

/// A shell that waits for input or for its children.
#[test]
fn a_waiting_shell_is_not_disturbed() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'exit 0' USR2; echo ready; while :; do read -t 0.02 line <> <(:); done";
    let mut victim = Victim::start(Command::new("bash").args(["-c", script]).current_dir(folder.path()));
    assert_eq!(victim.line(), "ready");
    for _ in 0..rounds().min(100) {
        attach(folder.path(), &victim.pid(), &[]);
        succeed(folder.path(), &["detach", &victim.pid()]);
    }
    assert_eq!(victim.end(), "");
}
