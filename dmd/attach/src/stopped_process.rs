//! Stops all threads of the process for a moment, to change its code. A thread that runs an instruction while it changes
//! could see a part of the change; a stopped one sees all of it when it continues.

use std::io;
use std::time::{Duration, Instant};

use crate::arch;
use crate::copies;
use crate::ptrace::TracedThread;
use crate::target::TargetProcess;

/// The time after which no more tries are made.
const LONGEST: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_millis(5);

/// A change of up to 8 bytes, as the library plans it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedChange {
    pub(crate) at: u64,
    old: [u8; 8],
    new: [u8; 8],
    bytes: usize,
}

impl PlannedChange {
    /// Reads the library's list: for each change the address, the old and the new contents, and their number of bytes.
    pub(crate) fn read_all(target: &TargetProcess, list: u64, count: u64) -> Option<Vec<Self>> {
        const WORDS: usize = 4;
        const MOST: u64 = 1 << 20;
        let count = usize::try_from(count).ok().filter(|_| count <= MOST)?;
        let mut bytes = vec![0; count * WORDS * 8];
        if !target.read(list, &mut bytes) {
            return None;
        }
        let changes = bytes.as_chunks::<8>().0.chunks_exact(WORDS).map(|words| {
            let [at, bytes] = [words[0], words[3]].map(u64::from_le_bytes);
            let bytes = usize::try_from(bytes).ok().filter(|bytes| (1..=8).contains(bytes))?;
            Some(Self { at, old: words[1], new: words[2], bytes })
        });
        changes.collect()
    }

    fn is_due(&self, target: &TargetProcess) -> bool {
        let mut now = [0; 8];
        target.read(self.at, &mut now[..self.bytes]) && now[..self.bytes] == self.old[..self.bytes]
    }
}

/// The result of changes: the number of replaced addresses, and the time for which the threads were stopped.
pub(crate) struct ChangeReport {
    pub(crate) copies: usize,
    pub(crate) stopped: Duration,
}

/// Stops all threads, makes the changes, and replaces copies of addresses. All changes are made, or none.
///
/// # Errors
///
/// Returns the reason. The process then continues as before.
pub(crate) fn change(
    target: &TargetProcess,
    moved: &[(u64, u64)],
    changes: &[PlannedChange],
) -> Result<ChangeReport, String> {
    let until = Instant::now() + LONGEST;
    loop {
        let since = Instant::now();
        let reason = match stop(target) {
            Ok(Ok(threads)) => {
                let changed = change_stopped(target, &threads, moved, changes);
                drop(threads);
                return changed.map(|copies| ChangeReport { copies, stopped: since.elapsed() });
            }
            Ok(Err(reason)) => reason.to_owned(),
            Err(error) => error.to_string(),
        };
        if Instant::now() > until {
            return Err(reason);
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Stops all threads that run the program's code. A reason means that the moment is bad: all threads continue.
fn stop(target: &TargetProcess) -> io::Result<Result<Vec<TracedThread>, &'static str>> {
    /// The number of times that a thread that is about to get a signal is stopped again.
    const SIGNALS: usize = 100;
    let mut stopped: Vec<TracedThread> = Vec::new();
    let mut signals = 0;
    loop {
        let threads = target.threads()?;
        let is_new = |number: u32| stopped.iter().all(|thread| thread.number() != number);
        let new: Vec<_> = threads.iter().filter(|thread| thread.runs_code && is_new(thread.number)).collect();
        if new.is_empty() {
            return Ok(Ok(stopped));
        }
        if new.iter().any(|thread| thread.is_stuck) {
            return Ok(Err("a thread cannot be stopped now"));
        }
        if new
            .iter()
            .any(|thread| !arch::MAKES_CALLS_AGAIN && thread.system_call.is_some_and(arch::is_not_restarted))
        {
            return Ok(Err("a thread is in a system call that a stop ends"));
        }
        // All are told to stop before the first one is waited for.
        let mut told = Vec::with_capacity(new.len());
        for thread in new {
            match TracedThread::tell_to_stop(thread.number) {
                Ok(thread) => told.push(thread),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(error),
            }
        }
        for thread in told {
            match thread.wait_for_stop() {
                Ok(Some(thread)) => stopped.push(thread),
                Ok(None) => signals += 1,
                // The thread has ended.
                Err(_) => {}
            }
        }
        if signals > SIGNALS {
            return Ok(Err("signals arrive"));
        }
    }
}

fn change_stopped(
    target: &TargetProcess,
    threads: &[TracedThread],
    moved: &[(u64, u64)],
    changes: &[PlannedChange],
) -> Result<usize, String> {
    let mappings = target.mappings().map_err(|error| error.to_string())?;
    if !changes.iter().all(|change| change.is_due(target)) {
        return Err("its code has changed since it was searched".to_owned());
    }
    for thread in threads {
        let registers = thread.registers().map_err(|error| error.to_string())?;
        let pc = arch::pc(&registers);
        let is_between =
            |change: &PlannedChange| (change.at + 1..change.at + arch::CHANGED_TOGETHER).contains(&pc);
        if changes.iter().any(is_between) {
            return Err("a thread is between two of its instructions; try again".to_owned());
        }
    }
    for (done, change) in changes.iter().enumerate() {
        if let Err(error) = target.write(change.at, &change.new[..change.bytes]) {
            for change in changes[..done].iter().rev() {
                let _ = target.write(change.at, &change.old[..change.bytes]);
            }
            return Err(format!("the system refuses to change its code through /proc/PID/mem: {error}"));
        }
    }
    let mut copies = 0;
    for thread in threads {
        // A thread without replaced copies keeps the functions' own addresses. Blocks that it frees stay in dumps.
        copies += copies::replace_in(target, thread, &mappings, moved).unwrap_or(0);
    }
    Ok(copies)
}
