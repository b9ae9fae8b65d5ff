//! Lists the modules by the kernel's mappings. Engine threads and the child of a fork do not take the loader's lock:
//! in the child, a thread of the parent may have held the lock, and then the lock is never released.

use super::DumpModule;
use super::loaded::build_id;
use crate::system::own_memory::OwnMemory;
use crate::system::raw_file;

/// The maximum number of bytes of headers, or of notes. No linker makes more.
const MOST: usize = 64 << 10;

/// Room for the kernel's list. Each part that is read costs a system call.
const ROOM: usize = 64 << 10;

const HEADER: usize = size_of::<libc::Elf64_Ehdr>();
const PROGRAM_HEADER: usize = size_of::<libc::Elf64_Phdr>();

/// Reads through the kernel, which returns an error for addresses that the process has unmapped in the meantime.
fn read(memory: &OwnMemory, address: usize, bytes: usize) -> Option<Vec<u8>> {
    if bytes > MOST {
        return None;
    }
    let mut read = vec![0; bytes];
    memory.read(address, &mut read).then_some(read)
}

/// The modules that are mapped.
pub(super) fn modules() -> Vec<DumpModule> {
    let maps = raw_file::read_whole(c"/proc/self/maps", ROOM);
    let memory = OwnMemory::open();
    let mappings: Vec<_> = maps.split(|byte| *byte == b'\n').filter_map(MappingLine::parse).collect();
    let mut modules = Vec::<DumpModule>::new();
    for mapping in mappings.iter().filter(|mapping| mapping.begins_file) {
        let Some(module) = module(&memory, mapping.start) else { continue };
        let holds = |other: &MappingLine<'_>| (module.start..module.end).contains(&other.start);
        // A file that is mapped only as data is not a module.
        if mappings.iter().any(|other| other.has_code && other.path == mapping.path && holds(other)) {
            modules.push(DumpModule { path: mapping.path.to_vec(), ..module });
        }
    }
    modules
}

/// A line of the kernel's list of mappings.
struct MappingLine<'m> {
    start: usize,
    path: &'m [u8],
    begins_file: bool,
    has_code: bool,
}

impl<'m> MappingLine<'m> {
    fn parse(line: &'m [u8]) -> Option<Self> {
        let mut columns = line.split(|byte| *byte == b' ').filter(|column| !column.is_empty());
        let (range, flags, offset) = (columns.next()?, columns.next()?, columns.next()?);
        let start = range.split(|byte| *byte == b'-').next()?;
        let start = usize::from_str_radix(core::str::from_utf8(start).ok()?, 16).ok()?;
        let path = if line.ends_with(b" [vdso]") {
            // The loader's name for the kernel's module.
            b"linux-vdso.so.1"
        } else {
            let path = line.get(line.iter().position(|byte| *byte == b'/')?..)?;
            path.strip_suffix(b" (deleted)").unwrap_or(path)
        };
        let begins_file = flags.starts_with(b"r") && offset.iter().all(|digit| *digit == b'0');
        Some(Self { start, path, begins_file, has_code: flags.get(2) == Some(&b'x') })
    }
}

/// The module that starts at this address; `None` if no module starts there.
fn module(memory: &OwnMemory, start: usize) -> Option<DumpModule> {
    let header = read(memory, start, HEADER)?;
    if !header.starts_with(&[0x7f, b'E', b'L', b'F', 2]) {
        return None;
    }
    let half = |at: usize| Some(u16::from_ne_bytes(header.get(at..at + 2)?.try_into().ok()?));
    let offset = usize::from_ne_bytes(header.get(32..40)?.try_into().ok()?);
    let (size, count) = (usize::from(half(54)?), usize::from(half(56)?));
    if size != PROGRAM_HEADER {
        return None;
    }
    let table = read(memory, start.checked_add(offset)?, count * PROGRAM_HEADER)?;
    let headers: Vec<_> = table.chunks_exact(PROGRAM_HEADER).filter_map(program_header).collect();
    let first = headers.iter().find(|header| header.p_type == libc::PT_LOAD)?;
    let bias = start.wrapping_sub(first.p_vaddr as usize & !4095);
    DumpModule::new(bias, &headers, |address, bytes| build_id(&read(memory, address, bytes)?))
}

fn program_header(bytes: &[u8]) -> Option<libc::Elf64_Phdr> {
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some(libc::Elf64_Phdr {
        p_type: half(0)?,
        p_flags: half(4)?,
        p_offset: word(8)?,
        p_vaddr: word(16)?,
        p_paddr: word(24)?,
        p_filesz: word(32)?,
        p_memsz: word(40)?,
        p_align: word(48)?,
    })
}
