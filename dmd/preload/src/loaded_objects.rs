//! The files that the loader has loaded, and their segments in memory.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use core::slice;

use dmd_redirect::elf::{EXECUTABLE, ElfFile, LOAD, Machine, RELRO, THIS_MACHINE, WRITABLE};
use dmd_redirect::{CodeSegment, LoadedImage};

/// A loaded segment.
#[derive(Clone, Copy)]
pub(crate) struct LoadedSegment {
    pub(crate) start: usize,
    pub(crate) file_bytes: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) kind: u32,
    pub(crate) flags: u32,
}

/// A file that the loader has loaded.
pub(crate) struct LoadedObject {
    /// The path; empty for the program itself.
    pub(crate) path: Vec<u8>,
    /// The distance between addresses in memory and addresses in the file.
    pub(crate) distance: usize,
    pub(crate) segments: Vec<LoadedSegment>,
    /// The address of the program headers, and a copy of them. Another thread may unload the object at any time.
    headers: (usize, Vec<u8>),
}

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, objects: *mut c_void) -> c_int {
    // SAFETY: `all` passes a pointer to its list.
    let objects = unsafe { &mut *objects.cast::<Vec<LoadedObject>>() };
    // SAFETY: the loader passes valid information.
    let info = unsafe { &*info };
    let path = if info.dlpi_name.is_null() {
        Vec::new()
    } else {
        // SAFETY: the loader's names end in 0.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes().to_vec()
    };
    let count = usize::from(info.dlpi_phnum);
    // SAFETY: the loader passes the program headers of the file, which stay in memory while it is loaded.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, count) };
    let distance = info.dlpi_addr as usize;
    let segments = headers.iter().map(|header| LoadedSegment {
        start: distance.wrapping_add(header.p_vaddr as usize),
        file_bytes: header.p_filesz as usize,
        memory_bytes: header.p_memsz as usize,
        kind: header.p_type,
        flags: header.p_flags,
    });
    let bytes = count * size_of::<libc::Elf64_Phdr>();
    // SAFETY: these are the bytes of `headers`, which have no padding.
    let copy = unsafe { slice::from_raw_parts(info.dlpi_phdr.cast::<u8>(), bytes) }.to_vec();
    objects.push(LoadedObject {
        path,
        distance,
        segments: segments.collect(),
        headers: (info.dlpi_phdr.expose_provenance(), copy),
    });
    0
}

/// All loaded files. The first is the program.
pub(crate) fn all() -> Vec<LoadedObject> {
    let mut objects: Vec<LoadedObject> = Vec::new();
    // SAFETY: `add` gets the list, which lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut objects).cast()) };
    objects
}

impl LoadedObject {
    fn loaded(&self) -> impl Iterator<Item = &LoadedSegment> {
        self.segments.iter().filter(|segment| segment.kind == LOAD)
    }

    /// Whether an address is in a segment of the file.
    pub(crate) fn contains(&self, address: usize) -> bool {
        self.loaded().any(|segment| address.wrapping_sub(segment.start) < segment.memory_bytes)
    }

    /// The address of the program headers.
    pub(crate) fn headers(&self) -> usize {
        self.headers.0
    }

    /// Waits for the loader's lock, and keeps the object loaded. Returns `None` if the object is not loaded any more,
    /// if it is now loaded at another address, or if it is the program itself.
    pub(crate) fn pin(&self) -> Option<PinnedObject> {
        let mut path = self.path.clone();
        path.push(0);
        let path = CStr::from_bytes_until_nul(&path).ok().filter(|path| !path.is_empty())?;
        // SAFETY: the path ends in 0. With this flag, the call loads nothing.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        let pinned = (!handle.is_null()).then(|| PinnedObject(handle.expose_provenance()))?;
        // SAFETY: a handle of the C library points to a `link_map`, whose first field is the distance between addresses
        // in memory and in the file. The pin keeps it.
        let distance = unsafe { handle.cast::<usize>().read() };
        (distance == self.distance).then_some(pinned)
    }

    /// The start of the lowest segment, and the end of the highest.
    pub(crate) fn range(&self) -> (usize, usize) {
        let start = self.loaded().map(|segment| segment.start).min().unwrap_or_default();
        let end = self.loaded().map(|segment| segment.start + segment.memory_bytes).max().unwrap_or_default();
        (start, end)
    }

    /// The protection that the loader gave to the page at an address: bits of `mmap`.
    pub(crate) fn protection(&self, address: usize) -> c_int {
        let relro = self.segments.iter().find(|segment| segment.kind == RELRO);
        let is_relro = relro.is_some_and(|relro| {
            // The loader rounds the start and the end down.
            let page = !(page_bytes() - 1);
            let (start, end) = (relro.start & page, (relro.start + relro.memory_bytes) & page);
            (start..end).contains(&address)
        });
        let flags = self.loaded().find(|segment| address.wrapping_sub(segment.start) < segment.memory_bytes);
        let flags = flags.map_or(0, |segment| segment.flags);
        let writable = if flags & WRITABLE != 0 && !is_relro { libc::PROT_WRITE } else { 0 };
        let executable = if flags & EXECUTABLE != 0 { libc::PROT_EXEC } else { 0 };
        libc::PROT_READ | writable | executable
    }

    /// Whether this file has the program headers of the object.
    fn is_loaded_from(&self, file: &[u8]) -> bool {
        let loaded = &self.headers.1;
        let offset = file
            .get(32..40)
            .map(|bytes| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)));
        let stored = offset.and_then(|offset| file.get(offset..offset.checked_add(loaded.len())?));
        stored == Some(loaded)
    }

    /// Maps the object's file. `None` if the file is missing, or has changed since it was loaded.
    pub(crate) fn file(&self) -> Option<MappedFile> {
        let open = |mut path: Vec<u8>| {
            path.push(0);
            let file = MappedFile::open(CStr::from_bytes_until_nul(&path).ok()?)?;
            self.is_loaded_from(file.bytes()).then_some(file)
        };
        if !self.path.is_empty() {
            return open(self.path.clone());
        }
        // If a command such as `ld.so PROGRAM` started the program, `/proc/self/exe` is the loader.
        open(b"/proc/self/exe".to_vec()).or_else(|| open(mapped_path(self.headers())?))
    }
}

/// The path of the file that is mapped at an address.
fn mapped_path(address: usize) -> Option<Vec<u8>> {
    let mappings = std::fs::read("/proc/self/maps").ok()?;
    let line = mappings.split(|byte| *byte == b'\n').find(|line| {
        let range = line.split(|byte| *byte == b' ').next().and_then(|range| str::from_utf8(range).ok());
        let hexadecimal = |text| usize::from_str_radix(text, 16);
        let ends = range.and_then(|range| range.split_once('-'));
        ends.is_some_and(|(start, end)| {
            hexadecimal(start).is_ok_and(|start| start <= address)
                && hexadecimal(end).is_ok_and(|end| address < end)
        })
    })?;
    Some(line[line.iter().position(|byte| *byte == b'/')?..].to_vec())
}

/// Reads a word of an object that may have been unloaded.
pub(crate) fn read_through_system(place: usize) -> Option<usize> {
    let mut value = 0_usize;
    let to = libc::iovec { iov_base: (&raw mut value).cast(), iov_len: size_of::<usize>() };
    let from =
        libc::iovec { iov_base: core::ptr::without_provenance_mut(place), iov_len: size_of::<usize>() };
    let process = std::process::id() as libc::pid_t;
    // SAFETY: `to` is a place for the word. The kernel checks `from`.
    let read = unsafe { libc::process_vm_readv(process, &raw const to, 1, &raw const from, 1, 0) };
    (read == size_of::<usize>() as isize).then_some(value)
}

/// The size of a page.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: the function has no precondition.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// An object that stays loaded as long as this value lives.
pub(crate) struct PinnedObject(usize);

impl Drop for PinnedObject {
    fn drop(&mut self) {
        // SAFETY: `pin` opened the handle.
        unsafe { libc::dlclose(with_exposed_provenance_mut(self.0)) };
    }
}

/// A file in memory.
pub(crate) struct MappedFile {
    start: *mut c_void,
    bytes: usize,
}

impl MappedFile {
    pub(crate) fn open(path: &CStr) -> Option<Self> {
        // SAFETY: the path ends in 0.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if file < 0 {
            return None;
        }
        // SAFETY: the function only moves the position of the descriptor that was just opened.
        let bytes = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
        let mapped = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0).and_then(|bytes| {
            // SAFETY: a new mapping of a file overlaps with no other.
            let start = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ, libc::MAP_PRIVATE, file, 0) };
            (start != libc::MAP_FAILED).then_some(Self { start, bytes })
        });
        // SAFETY: this function opened the descriptor, and the mapping does not need it.
        unsafe { libc::close(file) };
        mapped
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has this length and lives as long as `self`. Programs replace files, and do not write to
        // files that are executed.
        unsafe { slice::from_raw_parts(self.start.cast(), self.bytes) }
    }

    pub(crate) fn elf(&self) -> Option<ElfFile<'_>> {
        ElfFile::parse(self.bytes()).filter(|file| Some(file.machine()) == THIS_MACHINE)
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: `open` made the mapping, and no reference to it is left.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

/// A loaded file as it is in memory, after relocation.
pub(crate) struct MemoryImage<'o> {
    pub(crate) object: &'o LoadedObject,
    pub(crate) machine: Machine,
    pub(crate) is_relocatable: bool,
}

impl LoadedImage for MemoryImage<'_> {
    fn machine(&self) -> Machine {
        self.machine
    }

    fn is_relocatable(&self) -> bool {
        self.is_relocatable
    }

    fn code(&self) -> Vec<CodeSegment<'_>> {
        let code = self.object.loaded().filter(|segment| segment.flags & EXECUTABLE != 0);
        // Code that is not readable (`execute-only`) is not searched.
        let code = code.filter(|segment| segment.flags & libc::PF_R != 0).map(|segment| CodeSegment {
            address: segment.start.wrapping_sub(self.object.distance) as u64,
            // SAFETY: the loader mapped this part of the file, and it stays loaded while this library looks at it.
            bytes: unsafe {
                slice::from_raw_parts(with_exposed_provenance(segment.start), segment.file_bytes)
            },
        });
        code.collect()
    }

    fn contains(&self, address: u64) -> bool {
        self.object.contains(self.object.distance.wrapping_add(address as usize))
    }

    fn for_each_word(&self, each: &mut dyn FnMut(u64, u64)) {
        // In a file at a fixed address, constant data also contains addresses.
        let holds = |segment: &&LoadedSegment| {
            segment.flags & EXECUTABLE == 0 && (segment.flags & WRITABLE != 0 || !self.is_relocatable)
        };
        let distance = self.object.distance;
        for segment in self.object.loaded().filter(holds) {
            let (mut at, end) = (segment.start.next_multiple_of(8), segment.start + segment.file_bytes);
            while at + 8 <= end {
                // SAFETY: the address is in the segment, and aligned. Another thread may change the word meanwhile:
                // then either value is read.
                let value = unsafe { with_exposed_provenance::<usize>(at).read_volatile() };
                each(at.wrapping_sub(distance) as u64, value.wrapping_sub(distance) as u64);
                at += 8;
            }
        }
    }
}
