//! Compares the peak of the program's resident memory with the peak of its recorded heap.

use core::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dmd_analyze::DumpPeak;
use dmd_analyze::program::bytes;

/// The time between two reads of the peak. Reading takes less than 1 % of a processor. The peak is a lower bound,
/// because growth after the last read is not seen. Usually a read happens while the program writes its last dump.
const LOOK: Duration = Duration::from_millis(10);

/// The thread that reads the peak while the program runs. `wait4` would return a peak without a thread, but no safe
/// function calls it. Its peak also includes this process before `exec`, and the program's ended children.
pub(super) struct ResidentPeak {
    end: Sender<()>,
    thread: JoinHandle<Option<u64>>,
}

impl ResidentPeak {
    /// Starts the thread. `None` if the system does not show the peak of another process.
    pub(super) fn start(pid: u32) -> Option<Self> {
        // The open file never shows a later process with the same id.
        let mut file = File::open(format!("/proc/{pid}/status")).ok()?;
        let (end, ended) = mpsc::channel();
        let thread = thread::Builder::new().name("resident".to_owned()).spawn(move || {
            let mut peak = None;
            loop {
                // `exec` starts a new peak, and the dump describes the last program. So the last peak counts, not the
                // largest. An ended process has no value.
                peak = read(&mut file).or(peak);
                if ended.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    return peak;
                }
            }
        });
        thread.ok().map(|thread| Self { end, thread })
    }

    /// Stops the thread after the program has ended. Returns the program's peak in bytes, or slightly less.
    pub(super) fn end(self) -> Option<u64> {
        // The result is ignored: the thread ends in any case, and does not panic.
        let _ = self.end.send(());
        self.thread.join().ok().flatten()
    }
}

fn read(file: &mut File) -> Option<u64> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Resident memory is unexplained if it exceeds this many times the heap. The pages of an ordinary heap also contain
/// slop and free blocks, and can take two or three times the requested bytes.
const TIMES: u64 = 4;
/// Unexplained memory must also exceed the heap by this much: the process of a small heap often has some 10 MiB of
/// code, libraries, stacks and tables of DMD.
const ABOVE: u64 = 32 << 20;
/// The resident bytes that each block explains. Two million blocks of one byte take 97 MB, 48 bytes each: the smallest
/// block of the C library has 32 bytes, and DMD has a table of blocks. The rest is room for the growth of that table.
const PER_BLOCK: u64 = 128;
/// With sampling, blocks are not counted. This size is assumed: a heap of smaller blocks is rare.
const SMALL_BLOCK: u64 = 8;

/// The line that compares both peaks. Its `Display` is empty if the recorded heap explains the resident memory.
pub(super) struct ResidentComparison {
    resident: u64,
    heap: u64,
    /// The heap's peak may be higher than recorded by this many bytes.
    within: u64,
    blocks: u64,
}

impl ResidentComparison {
    pub(super) fn new(resident: u64, heap: &DumpPeak, is_sample: bool) -> Self {
        let blocks = if is_sample { heap.bytes() / SMALL_BLOCK } else { heap.blocks() };
        Self { resident, heap: heap.bytes(), within: heap.within(), blocks }
    }

    fn is_unexplained(&self) -> bool {
        let heap = self.heap.saturating_add(self.within);
        let resident = self.resident.saturating_sub(self.blocks.saturating_mul(PER_BLOCK));
        resident / TIMES > heap && resident.saturating_sub(heap) > ABOVE
    }
}

impl fmt::Display for ResidentComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_unexplained() {
            return Ok(());
        }
        write!(f, "At its peak the process had at least {} resident", bytes(self.resident.into()))?;
        match self.resident.checked_div(self.heap) {
            Some(times) => write!(f, ", {times} times the recorded heap")?,
            None => f.write_str(", and no recorded heap")?,
        }
        writeln!(
            f,
            ": most of the other memory did not come from malloc (the program's own allocator, mapped files, stacks, DMD)."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn only_memory_that_the_heap_does_not_explain_is_shown() {
        let check = |resident: u64, heap: u64, blocks: u64, expected: &str| {
            let text = ResidentComparison { resident, heap, within: 8192, blocks }.to_string();
            let start = text.split(": most of the other memory did not come from malloc").next();
            assert_eq!(start, Some(expected), "{resident} {heap} {blocks}");
        };
        let line = |rest: &str| format!("At its peak the process had at least {rest}");
        check(93 * MIB, 130_000, 12, &line("93.00 MiB resident, 750 times the recorded heap"));
        check(3 << 30, MIB, 1, &line("3.00 GiB resident, 3072 times the recorded heap"));
        check(33 * MIB, 0, 0, &line("33.00 MiB resident, and no recorded heap"));
        check(32 * MIB, 1, 1, "");
        check(400 * MIB, 100 * MIB, 1, "");
        check(400 * MIB, 8 * MIB, 4 * MIB, "");
    }
}
