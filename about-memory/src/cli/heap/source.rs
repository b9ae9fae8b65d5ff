//! The sources of a typed heap: a running process, a core file, or a dump of scan mode.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use about_memory::live::ForkedProcess;
use dmd_analyze::image::{FileMapping, read_image, read_threads};
use dmd_analyze::program::bytes;
use dmd_analyze::{AnalyzeError, Dump, DumpReadOptions, Mode};
use typed_heap::{CoreFile, LayeredMemory, MemorySource, ProcessMemory, ScanMemory, TypedError};

use super::super::input::InputArgument;
use super::super::recorded;
use super::super::{Failure, live_input, say};

/// The time that a process has to make its copy.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// A note is printed if more than one block in this many has no stack.
const WORTH_A_NOTE: usize = 100;

/// The blocks of a heap, and the memory of the same moment.
pub(super) struct HeapSource {
    pub(super) dump: Dump,
    place: HeapMemory,
}

enum HeapMemory {
    /// A dump with the contents of blocks, and perhaps a core file with the statics.
    Dump(Option<CoreFile>),
    Core(CoreFile),
    /// The memory of a process, and the copy that keeps this memory while it is read. `None` for a stopped process: its
    /// own memory is read.
    Process(ProcessMemory, Option<ForkedProcess>),
}

/// The reason why the memory of a process cannot be read, and what to do; `None` for an unusual error.
fn unreadable(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Some("no process has this id; `about-memory list` shows the processes that answer")
        }
        io::ErrorKind::PermissionDenied => Some(
            "its memory cannot be read: the process belongs to another user, or the system forbids it (see man 2 ptrace); \
             run this command as the user of the process or as root",
        ),
        _ => None,
    }
}

impl HeapSource {
    /// Opens a source. If the source is a dump, `core` can be a core file of the same process, which has the statics.
    pub(super) fn open(
        source: &InputArgument,
        core: Option<&PathBuf>,
        timeout: Duration,
        limits: &DumpReadOptions,
    ) -> Result<Self, Failure> {
        let failure = |error: anyhow::Error| Failure::File(source.name(), error);
        let pid = source.process()?;
        if core.is_some() && (pid.is_some() || CoreFile::is_elf(source.path())) {
            let reason = "--core is for dumps: a process and a core file already contain the statics";
            return Err(Failure::Usage(reason.to_owned()));
        }
        if let Some(pid) = pid {
            return Self::open_process(pid, timeout, limits);
        }
        if CoreFile::is_elf(source.path()) {
            let core = CoreFile::open(source.path()).map_err(|error| failure(error.into()))?;
            let missing = core.missing().map_err(|error| failure(error.into()))?;
            if missing > 0 {
                say(&format!(
                    "{}: the file was cut off, and {} of memory are missing; raise the limit of core files with ulimit -c",
                    source.name(),
                    bytes(missing.into())
                ));
            }
            let dump = read(&core, &core.mappings(), limits).map_err(|error| failure(error.into()))?;
            return Ok(Self { dump, place: HeapMemory::Core(core) });
        }
        let path = source.path();
        let read = limits.clone().contents(true);
        let dump = recorded::DumpOrRecording::read(path, &read)?.into_dump(
            path,
            "the contents of blocks",
            "scan",
        )?;
        if dump.mode() != Mode::Scan {
            return Err(failure(anyhow::anyhow!(
                "its mode is {}; types need the contents of blocks: use a running process, a core file, or a dump of scan \
                 mode (about-memory run --mode scan -- PROGRAM)",
                dump.mode()
            )));
        }
        let of_core =
            |path: &Path, error: TypedError| Failure::File(path.display().to_string(), error.into());
        let core = core.map(|path| CoreFile::open(path).map_err(|error| of_core(path, error))).transpose()?;
        Ok(Self { dump, place: HeapMemory::Dump(core) })
    }

    fn open_process(pid: u32, timeout: Duration, limits: &DumpReadOptions) -> Result<Self, Failure> {
        let failure = |error: TypedError| {
            let reason = match &error {
                TypedError::Io(error) => unreadable(error),
                _ => None,
            };
            let error = reason.map_or_else(|| error.into(), anyhow::Error::msg);
            Failure::File(format!("process {pid}"), error)
        };
        match ProcessMemory::stopped(pid).map_err(failure)? {
            Some(memory) => Self::read_process(pid, memory, None, limits),
            None => {
                let copy =
                    ForkedProcess::take(pid, timeout).map_err(|error| live_input::failure(&[pid], error))?;
                Self::open_copy(pid, copy, limits)
            }
        }
    }

    /// Opens a copy of the process with the number `pid`.
    pub(super) fn open_copy(
        pid: u32,
        copy: ForkedProcess,
        limits: &DumpReadOptions,
    ) -> Result<Self, Failure> {
        let memory = ProcessMemory::open(copy.pid())
            .map_err(|error| Failure::File(format!("process {pid}"), error.into()))?;
        Self::read_process(pid, memory, Some(copy), limits)
    }

    fn read_process(
        pid: u32,
        memory: ProcessMemory,
        copy: Option<ForkedProcess>,
        limits: &DumpReadOptions,
    ) -> Result<Self, Failure> {
        let failure = |error: anyhow::Error| Failure::File(format!("process {pid}"), error);
        let mappings = memory.mappings().map_err(|error| failure(error.into()))?;
        let mut dump = read(&memory, &mappings, limits).map_err(|error| failure(error.into()))?;
        let memory = match copy {
            Some(_) => {
                let threads = read_threads(&|address, into| memory.read(address, into), &mappings)
                    .map_err(|error| failure(error.into()))?;
                memory.with_threads(threads)
            }
            None => memory,
        };
        let blocks = dump.blocks().len();
        let without = dump.blocks().filter(|blocks| blocks.stack().is_none()).count();
        if without > blocks / WORTH_A_NOTE {
            say(&format!(
                "process {pid}: {without} of {blocks} blocks have no stack, so only pointers determine their types; for \
                 more types, start the program with DMD=--stacks=full"
            ));
        }
        if mappings.iter().any(|mapping| is_attached(mapping, &memory)) {
            let most = limits.entry_limit().saturating_sub(blocks);
            match memory.malloc_blocks(most) {
                Err(TypedError::Dump(AnalyzeError::TooManyEntries(_))) => say(&format!(
                    "process {pid}: blocks from before the attachment are not shown: there are more than {most}; raise \
                     --max-entries"
                )),
                older => {
                    let older = older.map_err(|error| failure(error.into()))?.into_iter();
                    let older = older.map(|block| (block.address, block.usable));
                    let (count, sum) = dump.add_older_blocks(older);
                    say(&match count {
                        0 => format!(
                            "process {pid}: blocks from before the attachment are not found, and not shown"
                        ),
                        _ => format!(
                            "process {pid}: {count} blocks ({}) are from before the attachment; only pointers determine \
                             their types",
                            bytes(sum.into())
                        ),
                    });
                }
            }
        }
        Ok(Self { dump, place: HeapMemory::Process(memory, copy) })
    }

    /// Returns an error if the process has ended, or if a stopped process has continued. In these cases, a part of the
    /// memory may be missing.
    pub(super) fn is_whole(&self) -> Result<(), anyhow::Error> {
        match &self.place {
            HeapMemory::Process(memory, _) if !memory.is_there() => {
                Err(anyhow::anyhow!("it ended before all of its memory was read"))
            }
            HeapMemory::Process(memory, None) if !memory.is_stopped() => {
                Err(anyhow::anyhow!("it continued before all of its memory was read; stop it again"))
            }
            _ => Ok(()),
        }
    }

    /// Calls `show` with the blocks and their memory.
    pub(super) fn with<T>(
        &self,
        show: impl FnOnce(&Dump, &dyn MemorySource) -> Result<T, TypedError>,
    ) -> Result<T, TypedError> {
        match &self.place {
            HeapMemory::Core(core) => show(&self.dump, core),
            HeapMemory::Process(memory, _) => show(&self.dump, memory),
            HeapMemory::Dump(core) => {
                let contents = ScanMemory::new(&self.dump)?;
                match core {
                    Some(core) => show(&self.dump, &LayeredMemory::new(&contents, core)),
                    None => show(&self.dump, &contents),
                }
            }
        }
    }
}

/// Whether the mapping is of the library that `about-memory attach` loads: its file has no name. Only in a process with
/// this library do blocks exist that DMD did not record.
fn is_attached(mapping: &FileMapping, memory: &ProcessMemory) -> bool {
    // If the system has no files in memory, the library is an `O_TMPFILE` file of a folder, which the kernel lists as
    // `#NUMBER (deleted)`.
    let is_unnamed = || {
        let name = mapping.path.rsplit('/').next().unwrap_or_default();
        let mut start = [0; 4];
        name.starts_with('#')
            && name.ends_with(" (deleted)")
            && mapping.offset == 0
            && memory.read(mapping.start, &mut start) == start.len()
            && start == *b"\x7fELF"
    };
    mapping.path.starts_with("/memfd:libdmd.so") || is_unnamed()
}

fn read(
    memory: &dyn MemorySource,
    mappings: &[FileMapping],
    limits: &DumpReadOptions,
) -> Result<Dump, AnalyzeError> {
    read_image(&|address, into| memory.read(address, into), mappings, limits.entry_limit())
}
