//! After a fork, the child process does not answer requests to its parent.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::{Victim, amount, until};

#[test]
fn a_child_does_not_answer_for_its_dead_parent() {
    let (mut victim, told) = Victim::told("fork", |_, _| {});
    let child: i32 = told[0].parse().unwrap();
    assert!(victim.ask("\"hello\"").contains(&format!("\"pid\":{}", victim.pid())));
    let socket = victim.socket();
    victim.kill();
    // The child has a copy of every descriptor that it has not closed.
    let result = UnixStream::connect(&socket);
    // SAFETY: the function has no precondition. The child was just started and does not end by itself.
    let alive = unsafe { libc::kill(child, libc::SIGKILL) } == 0;
    assert!(alive && result.is_err(), "{alive} {result:?}");
}

#[test]
fn a_child_s_end_leaves_the_parent_s_socket() {
    let victim = Victim::start("fork-exit");
    assert_eq!(amount(&victim.report(""), "names/secret"), Some(1));
}

#[test]
fn a_child_ignores_the_signals() {
    let (victim, told) = Victim::told("fork", |_, _| {});
    let child: i32 = told[0].parse().unwrap();
    // SAFETY: the function has no precondition. The child lives as long as its parent.
    unsafe { libc::kill(child, libc::SIGRTMIN()) };
    victim.signal(libc::SIGRTMIN());
    let reports = || {
        let entries = std::fs::read_dir(victim.runtime.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("memory-report-")).collect::<Vec<_>>()
    };
    let found = until("a report", || Some(reports()).filter(|reports| !reports.is_empty()));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains(&format!("-{}.json.gz", victim.pid())), "{found:?}");
}

#[test]
fn a_child_may_listen_for_itself() {
    let (victim, told) = Victim::told("fork-listen", |_, _| {});
    let socket = PathBuf::from(&told[0]);
    assert_eq!(victim.sockets().len(), 2);
    assert!(UnixStream::connect(socket).is_ok());
}
