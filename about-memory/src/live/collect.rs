//! The reports of several processes as one set.

use std::collections::HashSet;

use memory_report::{ReportSet, Warning, WarningKind};

use crate::platform::{self, RunningProgram};

use super::ask::{self, AskOptions, REPORTS_AT_ONCE, in_parallel};
use super::error::LiveError;
use super::sockets::{SocketFile, sockets, sockets_of};

/// A process that is sent a request.
struct AskedProcess {
    pid: u32,
    socket: Option<SocketFile>,
    /// Whether the process appears under its own name instead of as the main process.
    named: bool,
    /// Whether the process was found by a search instead of named by the caller. If a found process has ended, no
    /// warning names it.
    found: bool,
}

/// The reports of these processes. A single process appears as `Main Process (pid N)`, unless the options request its
/// own name; several appear as `NAME (pid N)`.
///
/// If some of the processes do not answer, warnings in the set name them.
///
/// # Errors
///
/// Returns the first process's error if no process answers.
pub fn collect(pids: &[u32], options: &AskOptions) -> Result<ReportSet, LiveError> {
    let pids = &once(pids);
    let named = pids.len() > 1 || options.own_name;
    let targets = pids.iter().zip(sockets_of(pids)?);
    let targets: Vec<_> =
        targets.map(|(pid, socket)| AskedProcess { pid: *pid, socket, named, found: false }).collect();
    ask_all(&targets, options)
}

/// Like [`collect`], for all listening processes of this user except this process. Even a single process appears as
/// `NAME (pid N)`.
///
/// # Errors
///
/// Returns an error if no process listens or answers.
pub fn collect_all(options: &AskOptions) -> Result<ReportSet, LiveError> {
    let targets: Vec<_> = sockets()?
        .into_iter()
        .map(|socket| AskedProcess { pid: socket.pid, socket: Some(socket), named: true, found: true })
        .collect();
    ask_all(&targets, options)
}

/// Like [`collect`], but also asks the running processes that were started by these processes. A single process in
/// `pids` is the main process, even if the options request its own name. Warnings in the set name the processes that do
/// not listen.
///
/// # Errors
///
/// Returns an error if no process in `pids` listens, or no process answers.
pub fn collect_tree(pids: &[u32], options: &AskOptions) -> Result<ReportSet, LiveError> {
    let pids = &once(pids);
    let mut seen: HashSet<u32> = pids.iter().copied().collect();
    let children: Vec<RunningProgram> = pids
        .iter()
        .flat_map(|pid| platform::descendants(*pid))
        .filter(|child| child.pid != std::process::id() && seen.insert(child.pid))
        .collect();
    let all: Vec<u32> = pids.iter().copied().chain(children.iter().map(|child| child.pid)).collect();
    let targets: Vec<_> = all
        .iter()
        .zip(sockets_of(&all)?)
        .enumerate()
        .map(|(at, (pid, socket))| AskedProcess {
            pid: *pid,
            socket,
            named: at > 0 || pids.len() > 1,
            found: false,
        })
        .collect();
    if targets[..pids.len()].iter().all(|target| target.socket.is_none()) {
        return Err(LiveError::NotListening);
    }
    ask_all(&targets, options)
}

/// Removes repeated ids and keeps the order.
fn once(pids: &[u32]) -> Vec<u32> {
    let mut seen = HashSet::new();
    pids.iter().copied().filter(|pid| seen.insert(*pid)).collect()
}

fn ask_all(targets: &[AskedProcess], options: &AskOptions) -> Result<ReportSet, LiveError> {
    // The name is read first: a process that dies while it answers has no name afterwards.
    let answers = in_parallel(targets, REPORTS_AT_ONCE, |target| {
        let name = platform::process_name(target.pid);
        let answer = match &target.socket {
            Some(socket) => ask::report(&socket.path, target.named, options),
            None => Err(LiveError::NotListening),
        };
        (name, answer)
    });
    if answers.iter().all(|(_, answer)| answer.is_err()) {
        let first = answers.into_iter().find_map(|(_, answer)| answer.err());
        return Err(first.unwrap_or(LiveError::NotListening));
    }
    let mut all = ReportSet::new();
    let mut usable_size_known = true;
    let mut names = HashSet::new();
    for (target, (name, answer)) in targets.iter().zip(answers) {
        let name = format!("{} (pid {})", name.as_deref().unwrap_or("process"), target.pid);
        match answer {
            Ok(mut set) => {
                usable_size_known &= set.usable_size_known();
                if targets.len() > 1 {
                    tell_apart(&mut set, target.pid, &name, &mut names);
                }
                all.append(set);
            }
            Err(LiveError::NotListening) if has_ended(target) => {}
            Err(error) => {
                all.warn(Warning::new(WarningKind::ProcessMissing, name, format!("missing: {error}")));
            }
        }
    }
    all.set_usable_size_known(usable_size_known);
    Ok(all)
}

/// Whether a search found the target by a socket that an ended process left. Removes such a socket.
fn has_ended(target: &AskedProcess) -> bool {
    target.found && target.socket.as_ref().is_some_and(SocketFile::remove_if_stale)
}

/// Renames the processes of one answer so that their names differ from the names in the other answers. Adds the
/// process's name to the subjects of its warnings.
fn tell_apart(set: &mut ReportSet, pid: u32, name: &str, taken: &mut HashSet<String>) {
    let mut own_name = None;
    let mut mine: HashSet<String> = HashSet::new();
    set.rename_processes(|process| {
        let mut renamed = process.to_owned();
        if taken.contains(&renamed) {
            renamed = format!("{process} (pid {pid})");
        }
        let mut number = 2;
        while taken.contains(&renamed) || mine.contains(&renamed) {
            renamed = format!("{process} (pid {pid}, {number})");
            number += 1;
        }
        mine.insert(renamed.clone());
        own_name.get_or_insert_with(|| renamed.clone());
        renamed
    });
    taken.extend(mine);
    let own_name = own_name.unwrap_or_else(|| name.to_owned());
    set.rename_warnings(|subject| format!("{own_name}: {subject}"));
}
