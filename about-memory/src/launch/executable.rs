//! Checks an executable file before it runs: whether the loader would preload a library, and whether the program would
//! call the library.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _};
use thiserror::Error;

use crate::platform;

/// The reason why a preloaded library cannot record a program.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchObstacle {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// The file is neither an executable of this system nor a script.
    #[error("is neither an executable of this system nor a script")]
    NotExecutable,
    /// The program is statically linked, so it has no loader.
    #[error("is statically linked, so libdmd.so cannot be preloaded; wrap its allocator in dmd::Dmd")]
    Static,
    /// The program gets rights that its user does not have, so the loader ignores `$LD_PRELOAD`.
    #[error(
        "is setuid, setgid or has capabilities, so the loader ignores LD_PRELOAD; run a copy without them"
    )]
    Privileged,
    /// The program contains its own `malloc` and calls it instead of the library's.
    #[error(
        "contains its own malloc, so it does not call the malloc of libdmd.so; wrap its allocator in dmd::Dmd"
    )]
    OwnMalloc,
    /// The program is built with this sanitizer, whose library must be loaded before all other libraries.
    #[error("is built with {0}, whose library must be loaded before libdmd.so; build without {0}")]
    Sanitizer(&'static str),
    /// The program is for another machine architecture than the library.
    #[error("is for another machine architecture than libdmd.so")]
    OtherMachine,
    /// The program's loader belongs to another C library.
    #[error("uses the loader {0}, which does not belong to the GNU C library")]
    OtherLoader(String),
    /// The file is a script, and its interpreter has this obstacle.
    #[error("is a script, and {0} {1}")]
    Interpreter(PathBuf, Box<LaunchObstacle>),
}

/// At most this many scripts in a chain of interpreters are followed, as in Linux.
const MOST_SCRIPTS: usize = 5;

/// Checks that this library can record a program if it is preloaded. A program that contains the wrapper `dmd::Dmd`
/// records itself, so it passes although it is statically linked or contains its own `malloc`.
///
/// # Errors
///
/// Returns an error if an obstacle prevents the recording.
pub fn check(program: &Path, library: &Path) -> Result<(), LaunchObstacle> {
    check_file(program, library, 0)
}

/// A file that is read on demand.
type ElfProgram<'a> = object::File<'a, &'a ReadCache<File>>;

fn check_file(program: &Path, library: &Path, depth: usize) -> Result<(), LaunchObstacle> {
    if let Some(interpreter) = interpreter(program).map_err(LaunchObstacle::Unreadable)? {
        if depth == MOST_SCRIPTS {
            return Err(LaunchObstacle::NotExecutable);
        }
        return check_file(&interpreter, library, depth + 1)
            .map_err(|obstacle| LaunchObstacle::Interpreter(interpreter, Box::new(obstacle)));
    }
    let file = ReadCache::new(File::open(program).map_err(LaunchObstacle::Unreadable)?);
    let executable = object::File::parse(&file).map_err(|_| LaunchObstacle::NotExecutable)?;
    let loader = match &executable {
        object::File::Elf64(elf) => loader(elf.elf_header(), &file),
        object::File::Elf32(elf) => loader(elf.elf_header(), &file),
        _ => return Err(LaunchObstacle::NotExecutable),
    };
    let needed = sanitizer(&executable, ".dynstr");
    let obstacle = match loader {
        None => LaunchObstacle::Static,
        Some(_) if machine(&executable) != library_machine(library)? => {
            return Err(LaunchObstacle::OtherMachine);
        }
        Some(loader) if loader.contains("ld-musl") => return Err(LaunchObstacle::OtherLoader(loader)),
        Some(_) if platform::is_privileged(program) => return Err(LaunchObstacle::Privileged),
        Some(_) if needed.is_some() => {
            return Err(needed.map_or(LaunchObstacle::OwnMalloc, LaunchObstacle::Sanitizer));
        }
        Some(_) if has_malloc(&executable) => {
            sanitizer(&executable, ".strtab").map_or(LaunchObstacle::OwnMalloc, LaunchObstacle::Sanitizer)
        }
        Some(_) => return Ok(()),
    };
    if has_dmd(&executable) { Ok(()) } else { Err(obstacle) }
}

/// Returns the interpreter of a script: the word after `#!`. `None` if the file is not a script.
fn interpreter(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut line = Vec::new();
    File::open(path)?.take(256).read_to_end(&mut line)?;
    let Some(line) = line.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let name = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    Ok(Some(PathBuf::from(String::from_utf8_lossy(name).into_owned())))
}

fn loader<E: FileHeader>(header: &E, file: &ReadCache<File>) -> Option<String> {
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    let path = segments.iter().find_map(|segment| segment.interpreter(endian, file).ok().flatten())?;
    Some(String::from_utf8_lossy(path).into_owned())
}

fn machine(file: &ElfProgram<'_>) -> (Architecture, bool) {
    (file.architecture(), file.is_64())
}

fn library_machine(library: &Path) -> Result<(Architecture, bool), LaunchObstacle> {
    let file = ReadCache::new(File::open(library).map_err(LaunchObstacle::Unreadable)?);
    let parsed = object::File::parse(&file).map_err(|_| LaunchObstacle::OtherMachine)?;
    Ok(machine(&parsed))
}

/// Whether the program would call its own `malloc`: the loader searches the executable before libraries.
fn has_malloc(file: &ElfProgram<'_>) -> bool {
    file.dynamic_symbols()
        .any(|symbol| symbol.is_definition() && symbol.is_global() && symbol.name() == Ok("malloc"))
}

/// Prefixes of names that identify sanitizers: functions that each instrumented object calls, and names of libraries.
const SANITIZERS: [(&[u8], &str); 10] = [
    (b"\0__asan_init\0", "AddressSanitizer"),
    (b"\0libasan.so", "AddressSanitizer"),
    (b"\0libclang_rt.asan", "AddressSanitizer"),
    (b"\0__hwasan_init\0", "HWAddressSanitizer"),
    (b"\0__tsan_init\0", "ThreadSanitizer"),
    (b"\0libtsan.so", "ThreadSanitizer"),
    (b"\0libclang_rt.tsan", "ThreadSanitizer"),
    (b"\0__msan_init\0", "MemorySanitizer"),
    (b"\0__lsan_init\0", "LeakSanitizer"),
    (b"\0liblsan.so", "LeakSanitizer"),
];

/// Returns the sanitizer that the program is built with, found by the names in a section.
fn sanitizer(file: &ElfProgram<'_>, section: &str) -> Option<&'static str> {
    let section = file.section_by_name(section)?;
    let names = section.data().ok()?;
    // A NUL separates the names.
    let starts = names.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| &names[at..]);
    let known = |name: &[u8]| SANITIZERS.iter().find(|(start, _)| name.starts_with(start));
    starts.into_iter().find_map(known).map(|(_, name)| *name)
}

/// Whether the file of a program contains the wrapper `dmd::Dmd`. `false` if the file cannot be read.
pub fn contains_dmd(program: &Path) -> bool {
    File::open(program).is_ok_and(|file| {
        let file = ReadCache::new(file);
        object::File::parse(&file).is_ok_and(|executable| has_dmd(&executable))
    })
}

/// Whether the program contains the wrapper `dmd::Dmd`.
fn has_dmd(file: &ElfProgram<'_>) -> bool {
    let mark = dmd_format::LINKED_MARK;
    file.sections()
        .filter(|section| section.name() == Ok(".rodata"))
        .any(|section| section.data().is_ok_and(|data| data.windows(mark.len()).any(|bytes| bytes == mark)))
}
