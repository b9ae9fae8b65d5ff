//! The file of a dump that is being written. A signal handler that ends the process removes the file, without the
//! writer's help.

use core::ffi::c_char;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use memory_report::new_file::NewFile;

/// The name of the file; null if no dump is being written. A thread that exchanges the pointer for null owns the text.
static NAME: AtomicPtr<c_char> = AtomicPtr::new(null_mut());
/// The process that writes the file. The child of a fork also has the name, but must not remove its parent's file.
static WRITER: AtomicU32 = AtomicU32::new(0);

/// The file of a dump that is being written. If two dumps are written at the same time, a handler removes only the
/// second file.
pub(super) struct UnfinishedFile(NewFile);

impl UnfinishedFile {
    pub(super) fn new(file: NewFile) -> Self {
        let name = CString::new(file.incomplete().as_os_str().as_bytes()).map(CString::into_raw);
        WRITER.store(std::process::id(), Ordering::Relaxed);
        forget(NAME.swap(name.unwrap_or(null_mut()), Ordering::AcqRel));
        Self(file)
    }

    pub(super) fn file(&mut self) -> &mut File {
        self.0.file()
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.0.finish()
    }

    pub(super) fn finish_new(&mut self, path: &Path) -> io::Result<()> {
        self.0.finish_new(path)
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        forget(NAME.swap(null_mut(), Ordering::AcqRel));
    }
}

fn forget(name: *mut c_char) {
    if !name.is_null() {
        // SAFETY: the name came from `CString::into_raw`, and the exchange gave it only to this thread.
        drop(unsafe { CString::from_raw(name) });
    }
}

/// Removes the file because the process ends. A signal handler may call this function.
#[cfg_attr(not(engine = "native"), allow(dead_code, reason = "no handler ends the process"))]
pub(crate) fn remove() {
    if WRITER.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let name = NAME.swap(null_mut(), Ordering::AcqRel);
    if !name.is_null() {
        // SAFETY: the name ends in 0. The exchange gave it only to this thread, which does not free it.
        unsafe { libc::unlink(name) };
    }
}
