//! The memory of a process, through `/proc/PID/mem`.

use std::fs::{self, File};
use std::io;

use dmd_analyze::image::Mapping;

use super::Memory;
use super::positioned::fill_at;
use crate::error::TypedError;

/// The memory of a process. The reader does not stop it: values that the program changes meanwhile are torn, so stop
/// the process first.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: u32,
    memory: File,
}

impl ProcessMemory {
    /// Opens the memory of a process.
    ///
    /// # Errors
    ///
    /// [`TypedError::Io`] if there is no such process, if the system forbids reading it (ptrace's rules), and on other
    /// systems than Linux, which have no such file.
    pub fn of(pid: u32) -> Result<Self, TypedError> {
        if !cfg!(target_os = "linux") {
            let reason = "the memory of a process can be read on Linux only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason).into());
        }
        Ok(Self { pid, memory: File::open(format!("/proc/{pid}/mem"))? })
    }

    /// Whether the process is still there. What was read of one that has ended is not whole.
    pub fn is_there(&self) -> bool {
        // The list of a process that ended is empty, or gone.
        fs::read(format!("/proc/{}/maps", self.pid)).is_ok_and(|maps| !maps.is_empty())
    }

    /// The mappings of its program and libraries, for [`read_image`](dmd_analyze::image::read_image).
    ///
    /// # Errors
    ///
    /// [`TypedError::Io`] if the process has ended.
    pub fn mappings(&self) -> Result<Vec<Mapping>, TypedError> {
        let maps = fs::read(format!("/proc/{}/maps", self.pid))?;
        Ok(String::from_utf8_lossy(&maps).lines().filter_map(mapping).collect())
    }
}

impl Memory for ProcessMemory {
    fn is_whole(&self) -> bool {
        true
    }

    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        fill_at(&self.memory, into, address)
    }
}

/// A line of the kernel's list of mappings; `None` if it has no file.
fn mapping(line: &str) -> Option<Mapping> {
    let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
    let mut words = line.split_ascii_whitespace();
    let (range, permissions, offset) = (words.next()?, words.next()?, words.next()?);
    let (start, end) = range.split_once('-')?;
    // Nothing before the path has a slash: a device's number and an inode follow.
    let path = &line[line.find(" /")? + 1..];
    Some(Mapping {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset: hexadecimal(offset)?,
        is_writable: permissions.contains('w'),
        path: path.to_owned(),
    })
}
