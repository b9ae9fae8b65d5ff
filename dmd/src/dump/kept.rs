//! The folder in which a black box keeps its dumps, and the file of a dump there. Several processes may share the
//! folder.
//!
//! The folder is the truth: each step lists it anew. Old dumps are removed only after a new one is whole, so that the
//! dumps of a crash survive a process that crashes again while it starts. One exception: if the dumps are larger than
//! the limit allows, for example because the limit was lowered, all except the newest one may go before.
//!
//! A file that is being written claims its room on the disk in advance, and its process holds a lock on it. So a partial
//! file without a lock belongs to a process that was killed, and the sum of all files stays within the limit. One
//! exception: a process waits only a moment for the lock of the folder (`LONGEST_WAIT`), and two processes may then claim
//! the same room.
//!
//! All calls go to the kernel without an allocation. A program may close descriptors that it did not open, so the
//! folder is opened for each step.

use core::ffi::{CStr, c_char, c_int};
use core::fmt::{self, Write as _};
use core::time::Duration;
use std::io::{self, Write};

use dmd_format::kept_dump::{KeptDumpName, LifeSign};

use crate::options::BlackBox;
use crate::system::folder_list::for_each_name;
use crate::system::raw_file::RawFile;

/// The room that a file claims at a time, in bytes.
const CLAIM: u64 = 4 << 20;
/// The bytes after which the written part goes to the disk: a part in the page cache counts as memory of the process's
/// group.
const SETTLE: u64 = 1 << 20;
/// The time for which a process waits for the lock of the folder. The holder may be stopped.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);
/// The kernel's numbers of file systems whose files are memory.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// The folder of kept dumps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptFolder {
    path: &'static CStr,
    keep: usize,
    max_disk: u64,
}

impl fmt::Display for KeptFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.to_bytes().escape_ascii())
    }
}

/// The sums of a folder.
#[derive(Default)]
struct FolderSums {
    /// The number of dumps that may be removed or counted: all except files that are being written.
    dumps: usize,
    /// The bytes of all files on the disk, with the claims of files that are being written.
    bytes: u64,
    oldest: Option<KeptDumpName>,
    newest: Option<KeptDumpName>,
    /// The bytes of the newest dump.
    newest_bytes: u64,
}

/// A name of the folder, for the kernel.
struct NameText {
    bytes: [u8; 128],
    len: usize,
}

impl NameText {
    fn new(name: KeptDumpName) -> Self {
        let mut text = Self { bytes: [0; 128], len: 0 };
        // The longest name has fewer bytes.
        let _ = write!(text, "{name}");
        text
    }

    fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }
}

impl fmt::Write for NameText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        let place = self.bytes.get_mut(self.len..end).filter(|_| end < 128).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// An open folder.
struct OpenFolder(RawFile);

/// Holds the lock of the folder, unless another process did not free it in time.
struct FolderLock<'f>(Option<&'f RawFile>);

impl Drop for FolderLock<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            lock(file, libc::LOCK_UN);
        }
    }
}

fn lock(file: &RawFile, operation: c_int) -> bool {
    // SAFETY: the call only takes or frees a lock of an open file.
    unsafe { libc::flock(file.descriptor(), operation) == 0 }
}

impl KeptFolder {
    pub(crate) fn new(path: &'static CStr, options: BlackBox) -> Self {
        Self { path, keep: options.keep.into(), max_disk: options.max_disk }
    }

    fn open(self) -> io::Result<OpenFolder> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path ends in 0.
        RawFile::from_call(unsafe { libc::open(self.path.as_ptr(), flags) }).map(OpenFolder)
    }

    /// Makes the folder if it is missing, and checks that this process can create files in it. Returns whether its
    /// files are memory.
    pub(crate) fn prepare(self) -> io::Result<bool> {
        // The call fails if the folder exists.
        // SAFETY: the path ends in 0.
        unsafe { libc::mkdir(self.path.as_ptr(), 0o700) };
        let folder = self.open()?;
        // SAFETY: the path ends in 0.
        if unsafe { libc::access(self.path.as_ptr(), libc::W_OK | libc::X_OK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(folder.is_in_memory())
    }

    /// Creates the partial file of a dump. `name` gets a later time if the folder has a later name.
    pub(crate) fn create(self, mut name: KeptDumpName) -> io::Result<KeptFile> {
        let folder = self.open()?;
        let claims = !folder.is_in_memory();
        let locked = folder.lock();
        let mut sums = folder.sums(None);
        // The newest dump stays until this one is whole.
        while sums.bytes.saturating_add(with_headroom(sums.newest_bytes)) > self.max_disk
            && sums.dumps > 1
            && folder.remove_oldest(&sums)
        {
            sums = folder.sums(None);
        }
        if let Some(newest) = sums.newest {
            // The clock may have been set back. Names must sort by their order.
            name.milliseconds = name.milliseconds.max(newest.milliseconds.saturating_add(1));
        }
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let text = NameText::new(name);
        // SAFETY: the folder is open, and the name ends in 0.
        let file = unsafe { libc::openat(folder.0.descriptor(), text.as_ptr(), flags, 0o600) };
        let file = RawFile::from_call(file)?;
        lock(&file, libc::LOCK_EX | libc::LOCK_NB);
        let mut created = KeptFile {
            folder: self,
            file,
            name,
            written: 0,
            claimed: 0,
            settled: 0,
            claims,
            is_whole: false,
        };
        created.claim(&folder, 1)?;
        drop(locked);
        Ok(created)
    }

    /// Removes the oldest dumps while there are too many, or too little room for another dump like `newest`.
    fn rotate(self, folder: &OpenFolder, newest: KeptDumpName, size: u64) {
        let _locked = folder.lock();
        loop {
            let sums = folder.sums(Some(newest));
            let is_full = sums.bytes.saturating_add(size + with_headroom(size)) > self.max_disk;
            if (sums.dumps < self.keep && !is_full) || !folder.remove_oldest(&sums) {
                return;
            }
        }
    }

    /// Writes a sign of life into a dump of this folder.
    pub(crate) fn sign(self, name: KeptDumpName, sign: LifeSign) {
        let Ok(folder) = self.open() else { return };
        let flags = libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let text = NameText::new(name);
        // SAFETY: the folder is open, and the name ends in 0.
        let file = unsafe { libc::openat(folder.0.descriptor(), text.as_ptr(), flags) };
        let Ok(file) = RawFile::from_call(file) else { return };
        let bytes = sign.encode();
        // SAFETY: the bytes are valid for a read.
        unsafe {
            libc::pwrite(
                file.descriptor(),
                bytes.as_ptr().cast(),
                bytes.len(),
                LifeSign::OFFSET as libc::off_t,
            )
        };
    }
}

/// The room for a dump that is somewhat larger than the last one.
fn with_headroom(bytes: u64) -> u64 {
    bytes + bytes / 2
}

impl OpenFolder {
    fn is_in_memory(&self) -> bool {
        let mut about = core::mem::MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: `about` is a place for the answer.
        unsafe { libc::fstatfs(self.0.descriptor(), about.as_mut_ptr()) };
        // SAFETY: all bytes are initialized: zeros, or the answer.
        let about = unsafe { about.assume_init() };
        IN_MEMORY.contains(&(about.f_type as u32))
    }

    fn lock(&self) -> FolderLock<'_> {
        let mut waited = Duration::ZERO;
        while !lock(&self.0, libc::LOCK_EX | libc::LOCK_NB) {
            if waited >= LONGEST_WAIT {
                return FolderLock(None);
            }
            std::thread::sleep(BETWEEN_TRIES);
            waited += BETWEEN_TRIES;
        }
        FolderLock(Some(&self.0))
    }

    /// Adds up all dumps except `own`.
    fn sums(&self, own: Option<KeptDumpName>) -> FolderSums {
        let mut sums = FolderSums::default();
        // Each listing needs its own position.
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the folder is open, and the name ends in 0.
        let list = unsafe { libc::openat(self.0.descriptor(), c".".as_ptr(), flags) };
        let Ok(list) = RawFile::from_call(list) else { return sums };
        for_each_name(&list, |name| {
            let Some(name) = str::from_utf8(name).ok().and_then(KeptDumpName::parse) else { return };
            if own == Some(name) {
                return;
            }
            let bytes = self.bytes(name);
            sums.bytes = sums.bytes.saturating_add(bytes);
            let order = |name: &KeptDumpName| (name.milliseconds, name.process, name.bytes);
            if sums.newest.is_none_or(|newest| order(&newest) < order(&name)) {
                (sums.newest, sums.newest_bytes) = (Some(name), bytes);
            }
            if name.is_partial && self.is_in_use(name) {
                return;
            }
            sums.dumps += 1;
            if sums.oldest.is_none_or(|oldest| order(&name) < order(&oldest)) {
                sums.oldest = Some(name);
            }
        });
        sums
    }

    /// The bytes of a file on the disk: its contents, and what it claims.
    fn bytes(&self, name: KeptDumpName) -> u64 {
        let mut about = core::mem::MaybeUninit::<libc::statx>::zeroed();
        let (text, flags) = (NameText::new(name), libc::AT_SYMLINK_NOFOLLOW);
        let wanted = libc::STATX_BLOCKS | libc::STATX_SIZE;
        // SAFETY: the folder is open, the name ends in 0, and `about` is a place for the answer. `libdmd.so` replaces
        // the function of the C library.
        unsafe {
            libc::syscall(
                libc::SYS_statx,
                self.0.descriptor(),
                text.as_ptr(),
                flags,
                wanted,
                about.as_mut_ptr(),
            )
        };
        // SAFETY: all bytes are initialized: zeros, or the answer.
        let about = unsafe { about.assume_init() };
        about.stx_size.max(about.stx_blocks.saturating_mul(512))
    }

    /// Whether a process is writing this partial file.
    fn is_in_use(&self, name: KeptDumpName) -> bool {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let text = NameText::new(name);
        // SAFETY: the folder is open, and the name ends in 0.
        let file = unsafe { libc::openat(self.0.descriptor(), text.as_ptr(), flags) };
        // Another user's file is not this process's to remove.
        RawFile::from_call(file).map_or(true, |file| !lock(&file, libc::LOCK_EX | libc::LOCK_NB))
    }

    /// Removes the oldest dump. Returns false if the folder has no dump, or if the system refuses.
    fn remove_oldest(&self, sums: &FolderSums) -> bool {
        sums.oldest.is_some_and(|oldest| self.remove(oldest))
    }

    fn remove(&self, name: KeptDumpName) -> bool {
        // SAFETY: the folder is open, and the name ends in 0.
        unsafe { libc::unlinkat(self.0.descriptor(), NameText::new(name).as_ptr(), 0) == 0 }
    }
}

/// The file of a dump. If it is dropped before it is whole, it is removed; if the process is killed, it stays.
pub(crate) struct KeptFile {
    folder: KeptFolder,
    file: RawFile,
    name: KeptDumpName,
    written: u64,
    /// The bytes for which the disk has room.
    claimed: u64,
    /// The bytes that were sent to the disk.
    settled: u64,
    /// Whether the file claims room. A claim on a file system in memory would take memory.
    claims: bool,
    is_whole: bool,
}

impl KeptFile {
    pub(crate) fn name(&self) -> KeptDumpName {
        self.name
    }

    /// Makes sure that the file may grow by `bytes`: within the limit of the folder, and with room on the disk.
    fn claim(&mut self, folder: &OpenFolder, bytes: u64) -> io::Result<()> {
        let needed = self.written.saturating_add(bytes);
        if needed <= self.claimed {
            return Ok(());
        }
        let others = folder.sums(Some(self.name)).bytes;
        let allowed = self.folder.max_disk.saturating_sub(others);
        if needed > allowed {
            return Err(io::Error::from_raw_os_error(libc::EDQUOT));
        }
        let claim = needed.saturating_add(CLAIM).min(allowed);
        if self.claims {
            let keeps_size = libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: the call reserves room in a file that this value owns.
            let failed =
                unsafe { libc::fallocate(self.file.descriptor(), keeps_size, 0, claim as libc::off_t) } != 0;
            let error = io::Error::last_os_error();
            if failed && error.raw_os_error() == Some(libc::ENOSPC) {
                return Err(error);
            }
            // Other errors mean that the file system has no claims.
        }
        self.claimed = claim;
        Ok(())
    }

    /// Sends the bytes since the last call to the disk, waits for those before, and drops them from the page cache.
    fn settle(&mut self) {
        let (before, now) = (self.settled as libc::off64_t, self.written as libc::off64_t);
        let descriptor = self.file.descriptor();
        // SAFETY: the call only concerns the pages of this file.
        unsafe { libc::sync_file_range(descriptor, before, now - before, libc::SYNC_FILE_RANGE_WRITE) };
        let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        if before > 0 {
            // SAFETY: as above.
            unsafe { libc::sync_file_range(descriptor, 0, before, all) };
            // SAFETY: as above.
            unsafe { libc::posix_fadvise(descriptor, 0, before, libc::POSIX_FADV_DONTNEED) };
        }
        self.settled = self.written;
    }

    /// Gives the file its final name, drops it from the page cache, and removes old dumps. Returns the name.
    pub(crate) fn finish(mut self) -> io::Result<KeptDumpName> {
        let folder = self.folder.open()?;
        // This frees the rest of the claim.
        // SAFETY: the call sets the length that the file already has.
        unsafe { libc::ftruncate(self.file.descriptor(), self.written as libc::off_t) };
        let whole = self.name.with_partial(false);
        let (from, to) = (NameText::new(self.name), NameText::new(whole));
        let descriptor = folder.0.descriptor();
        // SAFETY: the folder is open, and both names end in 0.
        if unsafe { libc::renameat(descriptor, from.as_ptr(), descriptor, to.as_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        self.is_whole = true;
        self.settle();
        self.settle();
        self.folder.rotate(&folder, whole, self.written);
        Ok(whole)
    }
}

impl Write for KeptFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len() as u64;
        if self.written + length > self.claimed {
            let folder = self.folder.open()?;
            let _locked = folder.lock();
            self.claim(&folder, length)?;
        }
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        if self.written - self.settled >= SETTLE {
            self.settle();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        if !self.is_whole
            && let Ok(folder) = self.folder.open()
        {
            folder.remove(self.name);
        }
    }
}
