//! Reports of several processes as one set, process by process.

use std::collections::HashSet;

use memory_report::{ReportSet, Warning, WarningKind};

use crate::platform::{self, Found};

use super::ask::{self, AskOptions, in_parallel};
use super::error::LiveError;
use super::sockets::{Socket, sockets, sockets_of};

/// A process to ask.
struct Target {
    pid: u32,
    socket: Option<Socket>,
    /// Whether it goes by its own name, rather than as the main process.
    named: bool,
    /// Whether it was found rather than asked for: that it has ended is no loss then.
    found: bool,
}

/// The reports of these processes. A single one is the `Main Process (pid N)`; several go by their own
/// names, as `NAME (pid N)`.
///
/// A process of several that does not answer is named by a warning.
///
/// # Errors
///
/// If none of them answers: the first one's reason.
pub fn collect(pids: &[u32], options: &AskOptions) -> Result<ReportSet, LiveError> {
    let pids = &once(pids);
    let named = pids.len() > 1;
    let targets = pids.iter().zip(sockets_of(pids)?);
    let targets: Vec<_> =
        targets.map(|(pid, socket)| Target { pid: *pid, socket, named, found: false }).collect();
    ask_all(&targets, options)
}

/// The reports of all processes of this user that listen, as [`collect`] gives them.
///
/// # Errors
///
/// If none listens, or none answers.
pub fn collect_all(options: &AskOptions) -> Result<ReportSet, LiveError> {
    let targets: Vec<_> = sockets()?
        .into_iter()
        .map(|socket| Target { pid: socket.pid, socket: Some(socket), named: true, found: true })
        .collect();
    ask_all(&targets, options)
}

/// As [`collect`], with all processes that these have started and that still run. The process given
/// is the main one. Those that do not listen are named by warnings.
///
/// # Errors
///
/// If none of the processes given answers.
pub fn collect_tree(pids: &[u32], options: &AskOptions) -> Result<ReportSet, LiveError> {
    let pids = &once(pids);
    let mut seen: HashSet<u32> = pids.iter().copied().collect();
    let children: Vec<Found> = pids
        .iter()
        .flat_map(|pid| platform::descendants(*pid))
        .filter(|child| child.pid != std::process::id() && seen.insert(child.pid))
        .collect();
    let all: Vec<u32> = pids.iter().copied().chain(children.iter().map(|child| child.pid)).collect();
    let targets: Vec<_> = all
        .iter()
        .zip(sockets_of(&all)?)
        .enumerate()
        .map(|(at, (pid, socket))| Target {
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

/// Each process once, in the order given.
fn once(pids: &[u32]) -> Vec<u32> {
    let mut seen = HashSet::new();
    pids.iter().copied().filter(|pid| seen.insert(*pid)).collect()
}

fn ask_all(targets: &[Target], options: &AskOptions) -> Result<ReportSet, LiveError> {
    // A name is looked up before asking: who dies over it has none afterwards.
    let answers = in_parallel(targets, |target| {
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
            Err(error) => all.warn(Warning {
                kind: WarningKind::ProcessMissing,
                subject: name,
                message: format!("missing: {error}"),
            }),
        }
    }
    all.set_usable_size_known(usable_size_known);
    Ok(all)
}

/// Whether a target is only what a dead process has left, which then is removed.
fn has_ended(target: &Target) -> bool {
    target.found && target.socket.as_ref().is_some_and(Socket::remove_if_stale)
}

/// Makes the process names of one answer differ from those of all others, and has its warnings say
/// whose they are.
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
