//! The memory of a process, through `/proc/PID/mem`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use dmd_analyze::AnalyzeError;
use dmd_analyze::image::{FileMapping, StoppedThread};

use super::MemorySource;
use super::glibc_heap::{self, HeapRanges, MallocBlock};
use super::positioned::fill_at;
use crate::error::TypedError;

/// The memory of a process. The reader does not stop the process. If the program changes a value during a read, the
/// value may be inconsistent, so stop the process first.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: u32,
    memory: File,
    threads: Vec<StoppedThread>,
    /// The start and the end of each mapping.
    areas: OnceLock<Vec<(u64, u64)>>,
}

impl ProcessMemory {
    /// Opens the memory of a process.
    ///
    /// # Errors
    ///
    /// Returns [`TypedError::Io`] if no process has this id, if the system forbids reading it (ptrace's rules), or on
    /// systems other than Linux.
    pub fn open(pid: u32) -> Result<Self, TypedError> {
        if !cfg!(target_os = "linux") {
            let reason = "the memory of a process can be read on Linux only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason).into());
        }
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        Ok(Self { pid, memory, threads: Vec::new(), areas: OnceLock::new() })
    }

    /// Opens the memory of a stopped process (`kill -STOP`, a debugger), with the stack pointers of its threads.
    /// `None` if the process is running. No code runs in the process.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open).
    pub fn stopped(pid: u32) -> Result<Option<Self>, TypedError> {
        let memory = Self::open(pid)?;
        if !memory.is_stopped() {
            return Ok(None);
        }
        let threads = memory.tasks().filter_map(|task| thread(&task)).collect();
        Ok(Some(memory.with_threads(threads)))
    }

    /// Whether all threads of the process are stopped.
    pub fn is_stopped(&self) -> bool {
        let mut tasks = self.tasks().peekable();
        tasks.peek().is_some() && tasks.all(|task| is_stopped(&task))
    }

    /// The kernel's folders for the threads.
    fn tasks(&self) -> impl Iterator<Item = PathBuf> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten();
        tasks.filter_map(|task| Some(task.ok()?.path()))
    }

    /// Sets the positions of the process's threads. A copy of a process lacks the threads of the original process. For
    /// a copy, pass the result of [`read_threads`](dmd_analyze::image::read_threads).
    #[must_use]
    pub fn with_threads(mut self, threads: Vec<StoppedThread>) -> Self {
        self.threads = threads;
        self
    }

    /// Whether the process still exists. If it does not, the bytes that were read from it may be incomplete.
    pub fn is_there(&self) -> bool {
        // After the process's end, its list of mappings is empty or missing.
        fs::read(format!("/proc/{}/maps", self.pid)).is_ok_and(|maps| !maps.is_empty())
    }

    /// The mappings of the process's program and libraries, for [`read_image`](dmd_analyze::image::read_image).
    ///
    /// # Errors
    ///
    /// Returns [`TypedError::Io`] if the process has ended.
    pub fn mappings(&self) -> Result<Vec<FileMapping>, TypedError> {
        Ok(self.maps()?.lines().filter_map(mapping).collect())
    }

    /// The blocks in use of the GNU C library's allocator, as its own structures contain them: also blocks that DMD did not
    /// record. Empty if the structures are not found, for example those of another version.
    ///
    /// # Errors
    ///
    /// Returns [`TypedError::Io`] if the process has ended, and [`AnalyzeError::TooManyEntries`] in
    /// [`TypedError::Dump`] if there are more than `max_blocks` blocks.
    pub fn malloc_blocks(&self, max_blocks: usize) -> Result<Vec<MallocBlock>, TypedError> {
        let maps = self.maps()?;
        let mut ranges = HeapRanges::default();
        let mut is_data_before = false;
        for line in maps.lines() {
            let Some(range) = range(line) else { continue };
            let mut words = line.split_ascii_whitespace().skip(1);
            let is_private_data = words.next().is_some_and(|rights| rights.starts_with("rw-p"));
            let name = words.nth(3).unwrap_or_default();
            let file = name.rsplit('/').next().unwrap_or_default();
            let is_library = file.starts_with("libc.so.6") || file.starts_with("libc-2.");
            match name {
                _ if !is_private_data => {}
                "[heap]" => ranges.heap = Some(range),
                // A part of the library's data has no file.
                "" if is_data_before => ranges.data.push(range),
                "" => ranges.anonymous.push(range),
                _ if is_library => ranges.data.push(range),
                _ => {}
            }
            is_data_before = is_library && is_private_data;
        }
        let blocks = glibc_heap::blocks_in_use(self, &ranges, max_blocks);
        blocks.ok_or_else(|| AnalyzeError::TooManyEntries(max_blocks).into())
    }

    fn maps(&self) -> Result<String, io::Error> {
        let maps = fs::read(format!("/proc/{}/maps", self.pid))?;
        Ok(String::from_utf8_lossy(&maps).into_owned())
    }
}

impl MemorySource for ProcessMemory {
    fn is_whole(&self) -> bool {
        true
    }

    fn threads(&self) -> Vec<StoppedThread> {
        self.threads.clone()
    }

    fn end_of(&self, address: u64) -> Option<u64> {
        let all = || Some(self.maps().ok()?.lines().filter_map(range).collect());
        let areas = self.areas.get_or_init(|| all().unwrap_or_default());
        let after = areas.partition_point(|(start, _)| *start <= address);
        let (_, end) = areas[..after].last()?;
        Some(*end).filter(|end| *end > address)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        fill_at(&self.memory, into, address)
    }
}

fn is_stopped(task: &Path) -> bool {
    let stat = fs::read(task.join("stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    // The name before the state may contain any characters.
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes());
    matches!(state, Some([b'T' | b't', ..]))
}

/// The position of a stopped thread. The last two numbers of the kernel's file are the stack pointer and the address
/// of the next instruction.
fn thread(task: &Path) -> Option<StoppedThread> {
    let number = task.file_name()?.to_str()?.parse().ok()?;
    let name = fs::read(task.join("comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name).trim_end().to_owned();
    let call = fs::read_to_string(task.join("syscall")).unwrap_or_default();
    let mut words = call.trim_end().rsplit(' ');
    let mut address = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let code = address();
    let stack_pointer = address();
    Some(StoppedThread { number: Some(number), name, stack_pointer, code, ..StoppedThread::default() })
}

/// The start and the end of a mapping, from a line of the kernel's list.
fn range(line: &str) -> Option<(u64, u64)> {
    let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    Some((hexadecimal(start)?, hexadecimal(end)?))
}

/// The mapping in a line of the kernel's list; `None` if it has no file.
fn mapping(line: &str) -> Option<FileMapping> {
    let (start, end) = range(line)?;
    let mut words = line.split_ascii_whitespace().skip(1);
    let (permissions, offset) = (words.next()?, words.next()?);
    // The fields before the path contain no slash after a blank.
    let path = &line[line.find(" /")? + 1..];
    Some(FileMapping {
        start,
        end,
        offset: u64::from_str_radix(offset, 16).ok()?,
        is_writable: permissions.contains('w'),
        path: path.to_owned(),
    })
}
