//! Which loaded module holds a pc, and where its unwind sections are.
//!
//! glibc 2.35 has `_dl_find_object`, which takes no lock and is safe in signal handlers. Elsewhere
//! `dl_iterate_phdr` is asked, which takes a lock of the loader's; only for a pc that was not seen yet.

use crate::eh_frame::{Sections, frames_address};
use crate::reader::Span;
use crate::sys::{auxiliary, is_readable};

pub(crate) use find_object::link_map;

/// A loaded module, as of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// The addresses that it was mapped to.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The address of `.eh_frame_hdr`, 0 if it has none.
    pub(crate) header: usize,
}

/// What tells a module from another that was loaded to the same addresses later: its build id or, if it has none,
/// what is known of its path and contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The address of the note; 0 for a module without a build id.
    pub(crate) address: usize,
    pub(crate) bytes: [u8; 16],
}

impl Module {
    /// The module that holds `pc`.
    pub(crate) fn find(pc: usize) -> Option<Module> {
        match find_object::find(pc) {
            Some(answer) => answer,
            None => Module::find_with_lock(pc),
        }
    }

    /// The module that holds `pc`, asked of a loader that has no better way.
    pub(crate) fn find_with_lock(pc: usize) -> Option<Module> {
        iterate(pc)
    }

    pub(crate) fn contains(&self, pc: usize) -> bool {
        (self.start..self.end).contains(&pc)
    }

    /// All of the module of which this may be one segment, if the kernel mapped it: the program, the loader or the
    /// vDSO. `_dl_find_object` tells the one segment where there are gaps between them; what the loader itself maps
    /// has none.
    fn whole(self) -> Module {
        let mapped = [auxiliary(libc::AT_PHDR), auxiliary(libc::AT_BASE), auxiliary(libc::AT_SYSINFO_EHDR)];
        let whole = mapped.into_iter().filter(|address| *address != 0).find_map(|address| {
            let start = address & !4095;
            let page = Module { start, end: start + 4096, header: self.header };
            let headers = page.program_headers()?;
            let end = headers.end(headers.bias(start));
            (start <= self.start && self.end <= end).then_some(Module { end, ..page })
        });
        whole.unwrap_or(self)
    }

    /// Is this the same module still, and not another one at its place? Takes no lock. `pc` is of a frame
    /// on this thread's stack, so that its module cannot go away meanwhile.
    pub(crate) fn is_still_there(&self, pc: usize, id: &Identity) -> bool {
        if id.address == 0 {
            return find_object::find(pc) == Some(Some(*self)) && self.sample() == Some(id.bytes);
        }
        let there = match find_object::find(pc) {
            Some(answer) => answer == Some(*self),
            // Without the loader's word: is what this reads mapped at all?
            None => is_readable(id.address & !3) && is_readable((id.address + id.bytes.len() - 1) & !3),
        };
        there && bytes_at(id.address, id.bytes.len()) == id.bytes
    }

    /// Can the module not be unloaded while this code can run? True of the program, of the loader, of the
    /// C library and of the module that this code is in.
    pub(crate) fn is_permanent(&self) -> bool {
        let here = Module::find as fn(usize) -> Option<Module>;
        let c_library: unsafe extern "C" fn(core::ffi::c_ulong) -> core::ffi::c_ulong = libc::getauxval;
        let addresses = [
            here as usize,
            c_library as usize,
            auxiliary(libc::AT_PHDR),
            auxiliary(libc::AT_BASE),
            auxiliary(libc::AT_SYSINFO_EHDR),
        ];
        addresses.into_iter().any(|address| self.contains(address))
    }

    /// The unwind sections, each up to the end of the segment that it is in.
    pub(crate) fn sections(&self) -> Option<Sections<'static>> {
        let header = self.span(self.header)?;
        let frames = self.span(frames_address(header)?)?;
        Some(Sections { header, frames })
    }

    /// Do the bytes at `pc`, which is in the module, read `code`?
    pub(crate) fn has_code_at<const N: usize>(&self, pc: usize, code: &[u8; N]) -> bool {
        self.span(pc).is_some_and(|span| span.bytes.starts_with(code))
    }

    /// What is mapped from `address` on to the end of its segment.
    fn span(&self, address: usize) -> Option<Span<'static>> {
        if !self.contains(address) {
            return None;
        }
        let end = match self.program_headers() {
            Some(headers) => {
                let bias = headers.bias(self.start);
                headers.list().filter(|header| header.p_type == libc::PT_LOAD).find_map(|header| {
                    let start = bias.wrapping_add(header.p_vaddr as usize);
                    let end = start.wrapping_add(header.p_filesz as usize);
                    (start..end).contains(&address).then_some(end)
                })?
            }
            None => self.end,
        };
        Some(Span { address, bytes: bytes_at(address, end.min(self.end) - address) })
    }

    /// What tells this module from others; `None` if nothing does.
    pub(crate) fn identity(&self) -> Option<Identity> {
        let sample = || Some(Identity { address: 0, bytes: self.sample()? });
        self.build_id().or_else(sample)
    }

    /// A hash of the path and of some of the contents: of the file's header, which tells how long the file is, of
    /// the table of functions, and of the code. Two files of one path for which it is the same have the same
    /// functions at the same places.
    pub(crate) fn sample(&self) -> Option<[u8; 16]> {
        const WORDS: usize = 64;
        let (_, _, path) = link_map(self.start)?;
        let mut contents = Hash::new();
        let headers = self.program_headers()?;
        let bias = headers.bias(self.start);
        let code = headers.list().find(|header| header.p_flags & libc::PF_X != 0);
        let code = code.and_then(|header| self.span(bias.wrapping_add(header.p_vaddr as usize)));
        let begin = self.span(self.start).map(|span| &span.bytes[..span.bytes.len().min(8 * WORDS)]);
        for bytes in begin
            .into_iter()
            .chain([self.span(self.header), code].into_iter().flatten().map(|span| span.bytes))
        {
            let step = (bytes.len() / 8 / WORDS).max(1);
            contents.add(bytes.len() as u64);
            for word in bytes.chunks_exact(8).step_by(step) {
                contents.add(u64::from_ne_bytes(word.try_into().ok()?));
            }
        }
        let mut name = Hash::new();
        path.to_bytes().iter().for_each(|byte| name.add(u64::from(*byte)));
        let mut sample = [0; 16];
        sample[..8].copy_from_slice(&contents.0.to_ne_bytes());
        sample[8..].copy_from_slice(&name.0.to_ne_bytes());
        Some(sample)
    }

    /// The build id, if the module has one.
    fn build_id(&self) -> Option<Identity> {
        let headers = self.program_headers()?;
        let bias = headers.bias(self.start);
        headers.list().filter(|header| header.p_type == libc::PT_NOTE).find_map(|header| {
            let start = bias.wrapping_add(header.p_vaddr as usize);
            let len = header.p_filesz as usize;
            let end = start.checked_add(len)?;
            if start < self.start || end > self.end {
                return None;
            }
            build_id_in(Span { address: start, bytes: bytes_at(start, len) })
        })
    }

    /// All of the build id.
    pub(crate) fn whole_build_id(&self) -> Option<&'static [u8]> {
        // The length stands three words before the bytes.
        let id = self.build_id()?;
        let len = self.span(id.address - 12)?.reader_at(id.address - 12)?.u32()? as usize;
        self.span(id.address)?.bytes.get(..len.min(64))
    }

    /// The program headers, if they lie in the module's first page as linkers put them.
    fn program_headers(&self) -> Option<ProgramHeaders> {
        const MAGIC: [u8; 5] = [0x7f, b'E', b'L', b'F', 2];
        let page = bytes_at(self.start, 4096.min(self.end - self.start));
        let span = Span { address: self.start, bytes: page };
        if page.get(..5)? != MAGIC {
            return None;
        }
        let offset = span.reader_at(self.start + 32)?.u64()? as usize;
        let size = span.reader_at(self.start + 54)?.u16()?;
        let count = usize::from(span.reader_at(self.start + 56)?.u16()?);
        let end = offset.checked_add(count.checked_mul(size_of::<libc::Elf64_Phdr>())?)?;
        let usual = usize::from(size) == size_of::<libc::Elf64_Phdr>() && offset.is_multiple_of(8);
        (usual && end <= page.len()).then_some(ProgramHeaders { address: self.start + offset, count })
    }
}

#[derive(Clone, Copy)]
struct ProgramHeaders {
    address: usize,
    count: usize,
}

impl ProgramHeaders {
    fn list(self) -> impl Iterator<Item = libc::Elf64_Phdr> {
        let first = core::ptr::with_exposed_provenance::<libc::Elf64_Phdr>(self.address);
        (0..self.count).map(move |index| {
            // SAFETY: the whole table lies in the module's first page.
            let header = unsafe { first.add(index) };
            // SAFETY: as above; the address is a multiple of 8, and any bytes make a header.
            unsafe { header.read() }
        })
    }

    /// Where the last segment ends.
    fn end(self, bias: usize) -> usize {
        let loaded = self.list().filter(|header| header.p_type == libc::PT_LOAD);
        loaded.map(|header| bias.wrapping_add((header.p_vaddr + header.p_memsz) as usize)).max().unwrap_or(0)
    }

    /// What to add to an address in the file.
    fn bias(self, start: usize) -> usize {
        let first = self.list().find(|header| header.p_type == libc::PT_LOAD);
        let first = first.map_or(0, |header| header.p_vaddr as usize & !4095);
        start.wrapping_sub(first)
    }
}

/// FNV-1a, of words.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    }
}

/// The first 16 bytes of the GNU build id among the notes of `span`.
fn build_id_in(span: Span<'_>) -> Option<Identity> {
    const GNU_BUILD_ID: u32 = 3;
    let mut reader = span.reader_at(span.address)?;
    while !reader.is_at_end() {
        let (name_len, len, kind) = (reader.u32()? as usize, reader.u32()? as usize, reader.u32()?);
        let mut name = reader.split(name_len.checked_next_multiple_of(4)?)?;
        let mut note = reader.split(len.checked_next_multiple_of(4)?)?;
        if kind == GNU_BUILD_ID && name_len == 4 && name.u32()?.to_ne_bytes() == *b"GNU\0" && len >= 16 {
            let address = note.address();
            let (low, high) = (note.u64()?, note.u64()?);
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&low.to_ne_bytes());
            bytes[8..].copy_from_slice(&high.to_ne_bytes());
            return Some(Identity { address, bytes });
        }
    }
    None
}

/// Bytes of a loaded module.
fn bytes_at(address: usize, len: usize) -> &'static [u8] {
    let first = core::ptr::with_exposed_provenance(address);
    // SAFETY: the callers give ranges inside of one segment of a module that is loaded: it holds a frame
    // of this thread's stack. The loader changes none of these bytes after it relocated the module.
    unsafe { core::slice::from_raw_parts(first, len) }
}

#[cfg(target_env = "gnu")]
mod find_object {
    use super::Module;
    use core::arch::asm;
    use core::ffi::c_void;

    /// glibc's `struct dl_find_object`, of version 2.35; later versions use the reserved words.
    #[repr(C)]
    struct Found {
        flags: u64,
        start: *mut c_void,
        end: *mut c_void,
        link_map: *mut c_void,
        header: *mut c_void,
        reserved: [u64; 7],
    }

    impl Found {
        fn link_map(&self) -> Option<&LinkMap> {
            // SAFETY: the loader's record of a module that holds a frame of this thread's stack.
            unsafe { self.link_map.cast::<LinkMap>().as_ref() }
        }
    }

    type FindObject = unsafe extern "C" fn(*mut c_void, *mut Found) -> i32;

    /// The beginning of glibc's `struct link_map`, which is what programs may use of it.
    #[repr(C)]
    struct LinkMap {
        bias: usize,
        path: *const core::ffi::c_char,
    }

    /// The module of `pc`, what is added to its addresses, and its path.
    pub(crate) fn link_map(pc: usize) -> Option<(Module, usize, &'static core::ffi::CStr)> {
        let found = ask(pc)??;
        let map = found.link_map()?;
        if map.path.is_null() {
            return None;
        }
        // SAFETY: as above; the loader's names end in 0.
        let path = unsafe { core::ffi::CStr::from_ptr(map.path) };
        Some((module(&found), map.bias, path))
    }

    fn module(found: &Found) -> Module {
        let (start, end) = (found.start.addr(), found.end.addr());
        let module = Module { start, end, header: found.header.addr() };
        // The first segment of nearly all modules is linked to 0.
        let is_first = found.link_map().is_some_and(|map| map.bias == start);
        if is_first { module } else { module.whole() }
    }

    /// `None` if this C library has no such function.
    pub(crate) fn find(pc: usize) -> Option<Option<Module>> {
        Some(ask(pc)?.as_ref().map(module))
    }

    fn ask(pc: usize) -> Option<Option<Found>> {
        let function = function()?;
        let mut found = core::mem::MaybeUninit::<Found>::zeroed();
        // SAFETY: the function looks `pc` up, whatever it is, and writes the structure if it finds it.
        let error = unsafe { function(core::ptr::without_provenance_mut(pc), found.as_mut_ptr()) };
        // SAFETY: zeroed above, and every bit pattern is fine.
        let found = unsafe { found.assume_init() };
        Some((error == 0).then_some(found))
    }

    /// The function's address, from a weak reference: asking `dlsym` would take the loader's lock.
    #[inline]
    fn function() -> Option<FindObject> {
        let address: usize;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: loads a word of the global offset table, which the linker made for this reference.
        unsafe {
            asm!(
                ".weak _dl_find_object",
                "mov {}, qword ptr [rip + _dl_find_object@GOTPCREL]",
                out(reg) address,
                options(nostack, pure, readonly, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: loads a word of the global offset table, which the linker made for this reference.
        unsafe {
            asm!(
                ".weak _dl_find_object",
                "adrp {0}, :got:_dl_find_object",
                "ldr {0}, [{0}, :got_lo12:_dl_find_object]",
                out(reg) address,
                options(nostack, pure, readonly, preserves_flags),
            );
        }
        let pointer = core::ptr::with_exposed_provenance::<c_void>(address);
        // SAFETY: null is none, and else it is the function of that name, whose type this is.
        unsafe { core::mem::transmute::<*const c_void, Option<FindObject>>(pointer) }
    }
}

#[cfg(not(target_env = "gnu"))]
mod find_object {
    use super::Module;

    pub(crate) fn find(_pc: usize) -> Option<Option<Module>> {
        None
    }

    pub(crate) fn link_map(_pc: usize) -> Option<(Module, usize, &'static core::ffi::CStr)> {
        None
    }
}

/// Asks the loader for all modules. No lock of ours is held over it.
#[cold]
fn iterate(pc: usize) -> Option<Module> {
    struct Search {
        pc: usize,
        found: Option<Module>,
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the loader gives a valid record.
        let info = unsafe { &*info };
        // SAFETY: the pointer to `search` below.
        let search = unsafe { &mut *search.cast::<Search>() };
        // SAFETY: the loader's own table, of that length.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let bias = info.dlpi_addr as usize;
        let mut module = Module { start: usize::MAX, end: 0, header: 0 };
        for header in headers {
            let start = bias.wrapping_add(header.p_vaddr as usize);
            match header.p_type {
                libc::PT_LOAD => {
                    module.start = module.start.min(start & !4095);
                    module.end = module.end.max(start.wrapping_add(header.p_memsz as usize));
                }
                libc::PT_GNU_EH_FRAME => module.header = start,
                _ => {}
            }
        }
        if (module.start..module.end).contains(&search.pc) {
            search.found = Some(module);
            return 1;
        }
        0
    }
    let mut search = Search { pc, found: None };
    // SAFETY: the callback has the right type, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}
