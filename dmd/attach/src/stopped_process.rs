//! Stops all threads of the process for a moment, to change its code. A thread that runs an instruction during the
//! change could see a part of the change; a stopped thread sees all of it when it continues.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use crate::arch::{self, ThreadRegisters};
use crate::copies::{self, UsedStack};
use crate::ptrace::{self, LONGEST_STOP, TracedThread};
use crate::target::{TargetMapping, TargetProcess};

/// The time after which no more tries are made.
const LONGEST: Duration = Duration::from_secs(2);
/// The time before the second try. It doubles with each try: each stops the whole program.
const FIRST_BETWEEN: Duration = Duration::from_millis(5);

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

    /// The state of the place; `None` if it has other contents than the library's search has found.
    fn state(&self, target: &TargetProcess) -> Option<ChangeState> {
        const WORD: usize = 8;
        let mut now = [0; 8];
        let now = &mut now[..self.bytes];
        if !target.read(self.at, now) {
            return None;
        }
        match &*now {
            now if *now == self.new[..self.bytes] => Some(ChangeState::Settled),
            now if *now == self.old[..self.bytes] => Some(ChangeState::Due),
            // The program has written another address into a variable, which it may do at any time.
            _ if self.bytes == WORD => Some(ChangeState::Settled),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeState {
    Due,
    /// Made already, or replaced by the program.
    Settled,
}

/// The result of changes: the number of replaced addresses, or the reason why the process continues without changes;
/// and the longest time for which the threads were stopped.
pub(crate) struct ChangeReport {
    pub(crate) copies: Result<usize, String>,
    pub(crate) stopped: Duration,
}

/// Stops all threads, makes the changes, and replaces copies of addresses. All changes are made, or none.
pub(crate) fn change(
    target: &TargetProcess,
    moved: &[(u64, u64)],
    changes: &[PlannedChange],
) -> ChangeReport {
    let until = Instant::now() + LONGEST;
    let (mut longest, mut between) = (Duration::ZERO, FIRST_BETWEEN);
    loop {
        let since = Instant::now();
        let threads = stop(target);
        let outcome = match &threads {
            Ok(Ok(threads)) => Ok(change_stopped(target, threads, moved, changes)),
            Ok(Err(reason)) => Err((*reason).to_owned()),
            Err(error) => Err(error.to_string()),
        };
        drop(threads);
        longest = longest.max(since.elapsed());
        let is_free = ptrace::let_late_threads_go();
        match outcome {
            Ok(copies) => return ChangeReport { copies, stopped: longest },
            Err(reason) if !is_free || Instant::now() > until => {
                return ChangeReport { copies: Err(reason), stopped: longest };
            }
            Err(_) => {}
        }
        std::thread::sleep(between);
        between *= 2;
    }
}

/// Stops all threads that run the program's code. A reason means that the moment is bad: all threads continue, those
/// that have not stopped yet as soon as they stop.
fn stop(target: &TargetProcess) -> io::Result<Result<Vec<TracedThread>, &'static str>> {
    /// The number of times that threads are stopped again that are about to get a signal, or to end.
    const AGAIN: usize = 100;
    /// The share of one thread that is about to end, and the time that it gets for that.
    const ENDING: usize = 5;
    const TO_END: Duration = Duration::from_micros(50);
    let until = Instant::now() + LONGEST_STOP;
    let mut stopped: Vec<TracedThread> = Vec::new();
    let mut known = HashSet::new();
    let mut again = 0;
    loop {
        let new = target.threads_without(&known)?;
        let new: Vec<_> = new.iter().filter(|thread| thread.runs_code).collect();
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
        // All threads get the request before this thread waits for the first of them. After an error, each thread
        // continues as soon as it has stopped.
        let mut told = Vec::with_capacity(new.len());
        for thread in new {
            match TracedThread::tell_to_stop(thread.number) {
                Ok(thread) => told.push(thread),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                // The thread is about to end, or another process traces it.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                    again += ENDING;
                    std::thread::sleep(TO_END);
                }
                Err(error) => return Err(error),
            }
        }
        for thread in told {
            match thread.wait_for_stop(until) {
                Ok(Some(thread)) => {
                    known.insert(thread.number());
                    stopped.push(thread);
                }
                Ok(None) => again += 1,
                // A thread that the stopped ones keep waiting would never stop.
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Ok(Err("a thread does not stop"));
                }
                // The thread has ended.
                Err(_) => {}
            }
        }
        if again > AGAIN || Instant::now() > until {
            return Ok(Err(
                "the threads cannot be stopped together: signals arrive, or threads start and end",
            ));
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
    let mut due = Vec::with_capacity(changes.len());
    for change in changes {
        match change.state(target) {
            Some(ChangeState::Due) => due.push(*change),
            Some(ChangeState::Settled) => {}
            None => return Err("its code has changed since it was searched".to_owned()),
        }
    }
    if let Some(together) = arch::CHANGED_TOGETHER {
        for thread in threads {
            let registers = thread.registers().map_err(|error| error.to_string())?;
            check_not_between(target, &registers, &mappings, &due, together)?;
        }
    }
    for (done, change) in due.iter().enumerate() {
        if let Err(error) = target.write(change.at, &change.new[..change.bytes]) {
            for change in due[..done].iter().rev() {
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

/// Returns an error if a thread continues, now or later, between two instructions that change together. These are at
/// most `together` bytes apart. The stack of a thread in a signal handler or a function has the address at which it
/// continues.
fn check_not_between(
    target: &TargetProcess,
    registers: &ThreadRegisters,
    mappings: &[TargetMapping],
    changes: &[PlannedChange],
    together: u64,
) -> Result<(), String> {
    let mut starts: Vec<u64> = changes.iter().map(|change| change.at).collect();
    starts.sort_unstable();
    let is_between = |address: u64| {
        let address = arch::code_address(address);
        let before = starts[..starts.partition_point(|start| *start < address)].last();
        before.is_some_and(|start| address - start < together)
    };
    let stack = UsedStack::read(target, registers, mappings).filter(|stack| stack.is_whole);
    let Some(stack) = stack else {
        return Err("the stack of a thread is too large to search it".to_owned());
    };
    let mut kept = arch::by_dwarf(registers).into_iter().flatten();
    let mut words = stack.bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    if kept.any(is_between) || words.any(is_between) {
        return Err("a thread is between two of its instructions; try again".to_owned());
    }
    Ok(())
}
