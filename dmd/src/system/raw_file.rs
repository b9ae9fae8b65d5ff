//! Files of the kernel, read through plain descriptors.
//!
//! A program may close descriptors that it did not open. Dropping a [`std::fs::File`] whose descriptor is closed
//! aborts a program with debug assertions, so code that runs beside the program's threads uses this type.

use core::ffi::{CStr, c_int};
use std::io::{self, Read as _};
use std::os::fd::IntoRawFd as _;

/// An open file.
pub(crate) struct RawFile(c_int);

impl RawFile {
    /// Opens a file for reading.
    pub(crate) fn open(path: &CStr) -> io::Result<Self> {
        // SAFETY: the path ends in 0.
        let descriptor = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(descriptor)) }
    }

    /// Fills `into` with the bytes from `offset`. Returns false if that fails.
    pub(crate) fn read_exact_at(&self, into: &mut [u8], offset: u64) -> bool {
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let Ok(at) = libc::off_t::try_from(offset + filled as u64) else { return false };
            // SAFETY: `rest` is a valid place for these bytes.
            let read = unsafe { libc::pread(self.0, rest.as_mut_ptr().cast(), rest.len(), at) };
            match usize::try_from(read) {
                Ok(0) => return false,
                Ok(read) => filled += read,
                Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// The descriptor, which this value closes.
    pub(crate) fn descriptor(&self) -> c_int {
        self.0
    }
}

impl RawFile {
    /// Takes a descriptor over, or returns the system's error if it is negative.
    pub(crate) fn from_call(descriptor: c_int) -> io::Result<Self> {
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(descriptor)) }
    }
}

impl io::Write for RawFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the bytes are valid for a read.
        let written = unsafe { libc::write(self.0, bytes.as_ptr().cast(), bytes.len()) };
        usize::try_from(written).map_err(|_| io::Error::last_os_error())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Read for RawFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `into` is a valid place for these bytes.
        let filled = unsafe { libc::read(self.0, into.as_mut_ptr().cast(), into.len()) };
        usize::try_from(filled).map_err(|_| io::Error::last_os_error())
    }
}

impl Drop for RawFile {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// Closes a file whose descriptor the program may have closed.
pub(crate) fn close_file(file: std::fs::File) {
    close(file.into_raw_fd());
}

fn close(descriptor: c_int) {
    // SAFETY: the caller owns the descriptor. If the program has closed it, the call fails.
    unsafe { libc::close(descriptor) };
}

/// Reads the start of a file with one call. Returns the number of bytes read, 0 if the file cannot be read.
pub(crate) fn read_start(path: &CStr, into: &mut [u8]) -> usize {
    RawFile::open(path).and_then(|mut file| file.read(into)).unwrap_or(0)
}

/// Reads a whole file; empty if it cannot be read. `room` is the expected size in bytes.
pub(crate) fn read_whole(path: &CStr, room: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(room);
    match RawFile::open(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => bytes,
        Err(_) => Vec::new(),
    }
}
