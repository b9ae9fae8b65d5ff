//! The memory of a process, through `/proc/PID/mem`.

use std::fs::File;
use std::io;

use super::Memory;
use super::positioned::fill_at;
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
    /// [`TypedError::Io`] if there is no such process, if the system forbids reading it (ptrace's rules), and on other
    /// systems than Linux, which have no such file.
    pub fn of(pid: u32) -> Result<Self, TypedError> {
        if !cfg!(target_os = "linux") {
            let reason = "the memory of a process can be read on Linux only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason).into());
        }
        Ok(Self(File::open(format!("/proc/{pid}/mem"))?))
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        fill_at(&self.0, into, address)
    }
}
