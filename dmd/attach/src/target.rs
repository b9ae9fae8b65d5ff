//! The process to attach to: its memory, mappings and threads, and the reasons to refuse it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;

use crate::error::AttachError;
use crate::ptrace::own_user;

/// A mapping with its file.
#[derive(Clone, Debug)]
pub(crate) struct TargetMapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) is_code: bool,
    /// The device and the inode; equal for all mappings of a file.
    pub(crate) file: (String, u64),
    /// The path as the kernel shows it, or a name in brackets.
    pub(crate) path: String,
}

/// A process whose memory this process may read and write.
#[derive(Debug)]
pub(crate) struct TargetProcess {
    pub(crate) number: u32,
    memory: File,
}

/// A thread, and the system call in which it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetThread {
    pub(crate) number: u32,
    /// The number of the system call; `None` if the thread is running.
    pub(crate) system_call: Option<i64>,
    /// Whether the thread cannot be stopped now.
    pub(crate) is_stuck: bool,
    /// Whether the thread may run the program's code: it is no thread of the kernel's, and has not ended.
    pub(crate) runs_code: bool,
}

impl TargetProcess {
    /// Checks in `/proc` that the process can be attached to, and opens its memory.
    pub(crate) fn check(number: u32, despite_filter: bool) -> Result<Self, AttachError> {
        if number == std::process::id() {
            return Err(AttachError::Itself);
        }
        let status = status(number, number)?;
        let group = status.number("Tgid:").unwrap_or(number.into()) as u32;
        if group != number {
            return Err(AttachError::ThreadOf(group));
        }
        match status.value("State:").and_then(|state| state.chars().next()) {
            // The files in `/proc` of a process without its main thread do not show its memory.
            Some('Z') if status.number("Threads:").is_some_and(|count| count > 1) => {
                return Err(AttachError::NoMainThread);
            }
            Some('Z' | 'X') => return Err(AttachError::Zombie),
            Some('T') => return Err(AttachError::Stopped),
            _ => {}
        }
        if status.number("Kthread:") == Some(1) || status.value("VmSize:").is_none() {
            return Err(AttachError::KernelThread);
        }
        if let Some(tracer) = status.number("TracerPid:").filter(|tracer| *tracer != 0) {
            return Err(AttachError::Traced(tracer as u32));
        }
        let user = status.number("Uid:").unwrap_or_default() as u32;
        if own_user() != 0 && own_user() != user {
            return Err(AttachError::OtherUser(user));
        }
        if status.value("x86_Thread_features:").is_some_and(|features| features.contains("shstk")) {
            return Err(AttachError::ShadowStack);
        }
        if !despite_filter && status.filters_itself() {
            return Err(AttachError::Filter);
        }
        let memory = fs::OpenOptions::new().read(true).write(true).open(format!("/proc/{number}/mem"));
        let memory = memory.map_err(|error| forbidden(number, &error))?;
        Ok(Self { number, memory })
    }

    /// Fills `into` with the bytes at an address. Returns whether all of them could be read.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.memory.read_exact_at(into, address).is_ok()
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }

    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }

    /// The bytes at an address up to a 0, at most `most`.
    pub(crate) fn text(&self, address: u64, most: usize) -> String {
        let mut bytes = vec![0; most];
        let mut length = most;
        while length > 0 && !self.read(address, &mut bytes[..length]) {
            length /= 2;
        }
        let text = bytes[..length].split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    pub(crate) fn mappings(&self) -> io::Result<Vec<TargetMapping>> {
        let maps = fs::read(format!("/proc/{}/maps", self.number))?;
        Ok(String::from_utf8_lossy(&maps).lines().filter_map(mapping).collect())
    }

    /// The threads: first threads in a system call that the kernel restarts after a stop, then running threads, and
    /// last threads in a system call that a stop ends with an error.
    pub(crate) fn threads(&self) -> io::Result<Vec<TargetThread>> {
        self.threads_without(&HashSet::new())
    }

    /// The threads without these ones.
    pub(crate) fn threads_without(&self, known: &HashSet<u32>) -> io::Result<Vec<TargetThread>> {
        let mut threads = Vec::new();
        for entry in fs::read_dir(format!("/proc/{}/task", self.number))? {
            let path = entry?.path();
            let Some(number) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else {
                continue;
            };
            if !known.contains(&number) {
                threads.push(thread(number, &path));
            }
        }
        threads.sort_by_key(|thread| match thread.system_call {
            Some(call) if crate::arch::is_not_restarted(call) => 2,
            Some(_) => 0,
            None => 1,
        });
        Ok(threads)
    }
}

fn thread(number: u32, path: &std::path::Path) -> TargetThread {
    let call = fs::read_to_string(path.join("syscall")).unwrap_or_default();
    // The file starts with the number of the system call, or with a word.
    let system_call = call.split(' ').next().and_then(|call| call.parse().ok()).filter(|call| *call >= 0);
    let stat = fs::read(path.join("stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // The kernel's own threads in the process, for example those of io_uring, never run the program's code.
    const KERNEL_WORKERS: u64 = 0x10 | 0x4000;
    let flags: u64 = rest.split(' ').nth(6).and_then(|flags| flags.parse().ok()).unwrap_or(0);
    let runs_code = flags & KERNEL_WORKERS == 0 && !rest.starts_with(['Z', 'X']);
    let is_stuck = !runs_code || !rest.starts_with(['R', 'S']);
    TargetThread { number, system_call, is_stuck, runs_code }
}

/// The lines `NAME VALUE` of a status file.
struct StatusLines(String);

fn status(process: u32, thread: u32) -> Result<StatusLines, AttachError> {
    let text = fs::read(format!("/proc/{process}/task/{thread}/status")).or_else(|_| {
        // `thread` may be a thread of another process: then only the folder `/proc/PROCESS` exists.
        fs::read(format!("/proc/{process}/status"))
    });
    let text = text.map_err(|_| AttachError::NoProcess)?;
    Ok(StatusLines(String::from_utf8_lossy(&text).into_owned()))
}

impl TargetProcess {
    /// The largest number of filters of system calls that a thread has; before Linux 5.9, the mode of its filters.
    pub(crate) fn filter_count(&self) -> Option<u64> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.number)).ok()?.flatten();
        let counts = threads.filter_map(|thread| {
            let number = thread.file_name().to_str()?.parse().ok()?;
            status(self.number, number).ok()?.filters()
        });
        counts.max()
    }
}

impl StatusLines {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
    }

    /// The first number of a line.
    fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.split_ascii_whitespace().next()?.parse().ok()
    }

    fn filters(&self) -> Option<u64> {
        self.number("Seccomp_filters:").or(self.number("Seccomp:"))
    }

    /// Whether the process has a filter of system calls that its parent does not have: a container's filter is for
    /// all its processes, and does not end them.
    fn filters_itself(&self) -> bool {
        let own = self.filters().unwrap_or(0);
        if own == 0 {
            return false;
        }
        let parent = self.number("PPid:").unwrap_or(0) as u32;
        let of_parent = status(parent, parent).ok().as_ref().and_then(Self::filters);
        // Without a parent that can be seen, the process is the first one of a container.
        of_parent.is_some_and(|of_parent| own > of_parent)
    }
}

fn forbidden(number: u32, error: &io::Error) -> AttachError {
    if error.kind() == io::ErrorKind::NotFound {
        return AttachError::Ended;
    }
    AttachError::Forbidden(trace_advice(number))
}

/// The reason why the system forbids tracing, and what the user can do.
pub(crate) fn trace_advice(number: u32) -> String {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let owner = fs::metadata(format!("/proc/{number}/mem")).map_or(0, |found| found.uid());
    advice_for(scope.trim(), owner, own_user()).to_owned()
}

/// The advice for the value of `kernel.yama.ptrace_scope` (empty without Yama), the user who owns the process's memory,
/// and the user who attaches.
fn advice_for(scope: &str, owner: u32, own_user: u32) -> &'static str {
    match scope {
        "3" => "kernel.yama.ptrace_scope is 3: no process may trace another until the next boot",
        "2" if own_user != 0 => "kernel.yama.ptrace_scope is 2: only root may attach; use sudo",
        "1" if owner == own_user && own_user != 0 => {
            "kernel.yama.ptrace_scope is 1: only root may attach to a process that it did not start; use sudo, or: sudo \
             sysctl kernel.yama.ptrace_scope=0"
        }
        _ if owner != own_user && own_user != 0 => {
            "the program has rights of another user (setuid, or capabilities): attach as root"
        }
        _ => "the system forbids tracing this process; in a container, start it with --cap-add=SYS_PTRACE",
    }
}

fn mapping(line: &str) -> Option<TargetMapping> {
    let mut words = line.splitn(6, ' ');
    let (range, rights, offset, device) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let inode = words.next()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_start().to_owned();
    let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = range.split_once('-')?;
    Some(TargetMapping {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset: hexadecimal(offset)?,
        is_code: rights.contains('x'),
        file: (device.to_owned(), inode),
        path,
    })
}

/// The processes with this name, or whose program's file has this name, that this user may attach to.
pub fn processes_named(name: &str) -> Vec<u32> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    let mut found: Vec<u32> = numbers
        .filter(|number| *number != std::process::id())
        .filter(|number| {
            let comm = fs::read(format!("/proc/{number}/comm")).unwrap_or_default();
            let program = fs::read_link(program(*number)).unwrap_or_default();
            let is_own = fs::metadata(format!("/proc/{number}"))
                .is_ok_and(|found| own_user() == 0 || found.uid() == own_user());
            is_own
                && (comm.trim_ascii_end() == name.as_bytes()
                    || program.file_name().is_some_and(|file| file == name))
        })
        .collect();
    found.sort_unstable();
    found
}

/// The user of a process, and the value of a variable in the environment with which it started.
pub fn user_and_variable(process: u32, variable: &str) -> (u32, Option<PathBuf>) {
    let user = fs::metadata(format!("/proc/{process}")).map_or(0, |found| found.uid());
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let value = environment
        .split(|byte| *byte == 0)
        .find_map(|line| line.strip_prefix(variable.as_bytes())?.strip_prefix(b"="));
    (user, value.map(|value| PathBuf::from(std::ffi::OsStr::from_bytes(value))))
}

/// Whether this process and another one have the same files: they are in one mount namespace, with one root.
pub fn sees_same_files(process: u32) -> bool {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let root = |process: &str| {
        fs::metadata(format!("/proc/{process}/root")).ok().map(|found| (found.dev(), found.ino()))
    };
    let (process, own) = (process.to_string(), "self");
    let has_same = |theirs: Option<_>, own| theirs.is_none() || theirs == own;
    has_same(namespace(&process), namespace(own)) && {
        let theirs = root(&process);
        theirs.is_none() || theirs == root(own)
    }
}

/// Whether a path of the kernel's files leads to them in the process: its root has a mounted `/proc`.
pub(crate) fn has_kernel_files(process: u32) -> bool {
    // A number that is not in the list of processes is a sign of another process's list, or of none.
    fs::symlink_metadata(format!("/proc/{process}/root/proc/self")).is_ok()
}

/// The program's file.
pub(crate) fn program(number: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{number}/exe"))
}

#[cfg(test)]
mod tests {
    use super::advice_for;

    /// Which advice a user gets for each value of Yama's setting. The kernel of the tests may not have Yama.
    #[test]
    fn advice_for_each_scope() {
        let (root, user_id, other) = (0, 1000, 1001);
        for (scope, owner, user, part) in [
            ("3", root, root, "until the next boot"),
            ("3", user_id, user_id, "until the next boot"),
            ("2", user_id, user_id, "use sudo"),
            ("1", user_id, user_id, "sysctl kernel.yama.ptrace_scope=0"),
            // Yama does not restrict root: something else forbids it.
            ("2", user_id, root, "--cap-add=SYS_PTRACE"),
            ("1", root, root, "--cap-add=SYS_PTRACE"),
            ("1", other, user_id, "attach as root"),
            ("0", root, user_id, "attach as root"),
            ("", root, user_id, "attach as root"),
            ("0", user_id, user_id, "--cap-add=SYS_PTRACE"),
            ("", root, root, "--cap-add=SYS_PTRACE"),
        ] {
            let advice = advice_for(scope, owner, user);
            assert!(advice.contains(part), "{scope} {owner} {user}: {advice}");
        }
    }
}
