//! The memory of a process, through `/proc/PID/mem`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::Memory;
use crate::error::TypedError;

/// The memory of a process. The reader does not stop it: values that the program changes meanwhile are torn, so stop
/// the process first.
#[derive(Debug)]
pub struct ProcessMemory(File);

impl ProcessMemory {
    /// Opens the memory of a process.
    ///
    /// # Errors
    ///
    /// [`TypedError::Io`] if there is no such process, or if the system forbids reading it (ptrace's rules).
    pub fn of(pid: u32) -> Result<Self, TypedError> {
        Ok(Self(File::open(format!("/proc/{pid}/mem"))?))
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < into.len() {
            match self.0.read_at(&mut into[filled..], address.wrapping_add(filled as u64)) {
                Ok(more) if more > 0 => filled += more,
                _ => break,
            }
        }
        filled
    }
}
