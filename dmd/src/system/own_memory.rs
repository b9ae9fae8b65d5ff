//! The memory of this process, read through the kernel, which returns an error for addresses that are not mapped.

#[cfg(target_os = "linux")]
mod by_system {
    use crate::system::raw_file::RawFile;

    /// The kernel's file of the process's memory; `None` if it cannot be opened. For example, the kernel refuses to
    /// open the file for a process that has changed its user.
    pub(crate) struct OwnMemory(Option<RawFile>);

    impl OwnMemory {
        pub(crate) fn open() -> Self {
            Self(RawFile::open(c"/proc/self/mem").ok())
        }

        /// Fills `window` with the bytes at an address. Returns false if that fails.
        pub(crate) fn read(&self, address: usize, window: &mut [u8]) -> bool {
            match &self.0 {
                Some(memory) => memory.read_exact_at(window, address as u64),
                None => read_by_call(address, window),
            }
        }
    }

    fn read_by_call(address: usize, window: &mut [u8]) -> bool {
        let to = libc::iovec { iov_base: window.as_mut_ptr().cast(), iov_len: window.len() };
        let from =
            libc::iovec { iov_base: core::ptr::without_provenance_mut(address), iov_len: window.len() };
        let process = std::process::id();
        // SAFETY: `to` is a place for the bytes. The kernel checks `from`.
        let read = unsafe {
            libc::syscall(libc::SYS_process_vm_readv, process, &raw const to, 1, &raw const from, 1, 0)
        };
        usize::try_from(read) == Ok(window.len())
    }
}

#[cfg(target_os = "macos")]
mod by_system {
    use mach2::traps::mach_task_self;
    use mach2::vm::mach_vm_read_overwrite;

    pub(crate) struct OwnMemory;

    impl OwnMemory {
        pub(crate) fn open() -> Self {
            Self
        }

        /// Fills `window` with the bytes at an address. Returns false if that fails.
        pub(crate) fn read(&self, address: usize, window: &mut [u8]) -> bool {
            let (length, mut read) = (window.len() as u64, 0);
            // SAFETY: the function has no precondition.
            let task = unsafe { mach_task_self() };
            let place = window.as_mut_ptr().addr() as u64;
            // SAFETY: the window has this many bytes, and `read` is a place for the number.
            let answer =
                unsafe { mach_vm_read_overwrite(task, address as u64, length, place, &raw mut read) };
            answer == 0 && read == length
        }
    }
}

#[cfg(windows)]
mod by_system {
    use core::ptr::without_provenance;

    use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
    use windows_sys::Win32::System::Threading::GetCurrentProcess;

    pub(crate) struct OwnMemory;

    impl OwnMemory {
        pub(crate) fn open() -> Self {
            Self
        }

        /// Fills `window` with the bytes at an address. Returns false if that fails.
        pub(crate) fn read(&self, address: usize, window: &mut [u8]) -> bool {
            let (length, mut read) = (window.len(), 0);
            // SAFETY: the function has no precondition.
            let process = unsafe { GetCurrentProcess() };
            let (from, to) = (without_provenance(address), window.as_mut_ptr().cast());
            // SAFETY: the window has this many bytes, and `read` is a place for the number.
            let answer = unsafe { ReadProcessMemory(process, from, to, length, &raw mut read) };
            answer != 0 && read == length
        }
    }
}

pub(crate) use by_system::OwnMemory;
