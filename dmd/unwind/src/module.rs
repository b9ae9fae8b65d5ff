//! Finds the loaded module that contains a pc, and its unwind sections.
//!
//! glibc has `_dl_find_object` since version 2.35. It takes no lock and is safe in signal handlers. With other C
//! libraries the walker calls `dl_iterate_phdr`. That function takes a lock of the loader, but the walker rarely calls
//! it: for a pc that is not in the cache, and for the general step.

use crate::eh_frame::{EhFrameSections, frames_address};
use crate::reader::ByteSpan;
use crate::sys::{auxiliary, is_readable};

pub(crate) use find_object::link_map;

/// A loaded module, in its current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnwindModule {
    /// The start of the addresses to which the loader mapped the module.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The address of `.eh_frame_hdr`, or 0 if the module does not have this section.
    pub(crate) header: usize,
}

/// Distinguishes a module from a module that the loader maps to the same addresses later: by the build id or, if there
/// is none, by a hash of the path and contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModuleIdentity {
    /// The address of the build id in its note; 0 if the module has no build id.
    pub(crate) address: usize,
    pub(crate) bytes: [u8; 16],
}

impl UnwindModule {
    /// The module that contains `pc`.
    pub(crate) fn find(pc: usize) -> Option<UnwindModule> {
        match find_object::find(pc) {
            Some(answer) => answer,
            None => UnwindModule::find_with_lock(pc),
        }
    }

    /// The module that contains `pc`, found by `dl_iterate_phdr`.
    pub(crate) fn find_with_lock(pc: usize) -> Option<UnwindModule> {
        iterate(pc)
    }

    pub(crate) fn contains(&self, pc: usize) -> bool {
        (self.start..self.end).contains(&pc)
    }

    /// The whole module. `self` may be only one segment of it. The difference matters only for modules that the kernel
    /// mapped: the program, the loader or the vDSO. `_dl_find_object` returns one segment only if there are gaps
    /// between segments; modules that the loader maps have no gaps.
    #[cfg(target_env = "gnu")]
    fn whole(self) -> UnwindModule {
        let mapped = [auxiliary(libc::AT_PHDR), auxiliary(libc::AT_BASE), auxiliary(libc::AT_SYSINFO_EHDR)];
        let whole = mapped.into_iter().filter(|address| *address != 0).find_map(|address| {
            let start = address & !4095;
            let page = UnwindModule { start, end: start + 4096, header: self.header };
            let headers = page.program_headers()?;
            let end = headers.end(headers.bias(start));
            (start <= self.start && self.end <= end).then_some(UnwindModule { end, ..page })
        });
        whole.unwrap_or(self)
    }

    /// Whether the same module is still loaded here. Takes no lock. `pc` belongs to a frame on this thread's stack, so
    /// its module cannot be unloaded during the call.
    pub(crate) fn is_still_there(&self, pc: usize, id: &ModuleIdentity) -> bool {
        if id.address == 0 {
            return find_object::find(pc) == Some(Some(*self)) && self.sample() == Some(id.bytes);
        }
        let there = match find_object::find(pc) {
            Some(answer) => answer == Some(*self),
            // Without `_dl_find_object`, check that the bytes to read are mapped.
            None => is_readable(id.address & !3) && is_readable((id.address + id.bytes.len() - 1) & !3),
        };
        there && bytes_at(id.address, id.bytes.len()) == id.bytes
    }

    /// Whether the module cannot be unloaded while this code can run. This is true of the program, the loader, the
    /// vDSO, the C library and the module that contains this code.
    pub(crate) fn is_permanent(&self) -> bool {
        let here = UnwindModule::find as fn(usize) -> Option<UnwindModule>;
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

    /// The unwind sections, each from its start to the end of its segment.
    pub(crate) fn sections(&self) -> Option<EhFrameSections<'static>> {
        let header = self.span(self.header)?;
        let frames = self.span(frames_address(header)?)?;
        Some(EhFrameSections { header, frames })
    }

    /// Whether the bytes at `pc`, which is in the module, are equal to `code`.
    pub(crate) fn has_code_at<const N: usize>(&self, pc: usize, code: &[u8; N]) -> bool {
        self.span(pc).is_some_and(|span| span.bytes.starts_with(code))
    }

    /// The bytes from `address` to the end of its segment.
    fn span(&self, address: usize) -> Option<ByteSpan<'static>> {
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
        Some(ByteSpan { address, bytes: bytes_at(address, end.min(self.end) - address) })
    }

    /// The module's identity; `None` if it has neither a build id nor a path.
    pub(crate) fn identity(&self) -> Option<ModuleIdentity> {
        let sample = || Some(ModuleIdentity { address: 0, bytes: self.sample()? });
        self.build_id().or_else(sample)
    }

    /// A hash of the path and of some of the contents: of the start of the file, whose headers show the file's length,
    /// of the table of functions, and of the code. If two files with the same path have the same hash, they have the
    /// same functions at the same addresses.
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
    fn build_id(&self) -> Option<ModuleIdentity> {
        let headers = self.program_headers()?;
        let bias = headers.bias(self.start);
        headers.list().filter(|header| header.p_type == libc::PT_NOTE).find_map(|header| {
            let start = bias.wrapping_add(header.p_vaddr as usize);
            let len = header.p_filesz as usize;
            let end = start.checked_add(len)?;
            if start < self.start || end > self.end {
                return None;
            }
            build_id_in(ByteSpan { address: start, bytes: bytes_at(start, len) })
        })
    }

    /// The whole build id.
    pub(crate) fn whole_build_id(&self) -> Option<&'static [u8]> {
        // The length is in the note's second word, three words before the id.
        let id = self.build_id()?;
        let len = self.span(id.address - 12)?.reader_at(id.address - 12)?.u32()? as usize;
        self.span(id.address)?.bytes.get(..len.min(64))
    }

    /// The program headers; `None` if they are not in the module's first page, where linkers put them.
    fn program_headers(&self) -> Option<ProgramHeaders> {
        const MAGIC: [u8; 5] = [0x7f, b'E', b'L', b'F', 2];
        let page = bytes_at(self.start, 4096.min(self.end - self.start));
        let span = ByteSpan { address: self.start, bytes: page };
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
            // SAFETY: `program_headers` checked that the table of `count` headers is in the module's first page;
            // `index < count`.
            let header = unsafe { first.add(index) };
            // SAFETY: as above; `program_headers` checked the alignment of 8, and any bytes make a valid header.
            unsafe { header.read() }
        })
    }

    /// The end address of the last segment.
    #[cfg(target_env = "gnu")]
    fn end(self, bias: usize) -> usize {
        let loaded = self.list().filter(|header| header.p_type == libc::PT_LOAD);
        loaded.map(|header| bias.wrapping_add((header.p_vaddr + header.p_memsz) as usize)).max().unwrap_or(0)
    }

    /// The address in the process minus the address in the file.
    fn bias(self, start: usize) -> usize {
        let first = self.list().find(|header| header.p_type == libc::PT_LOAD);
        let first = first.map_or(0, |header| header.p_vaddr as usize & !4095);
        start.wrapping_sub(first)
    }
}

/// FNV-1a over words, with a rotation.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    }
}

/// The first 16 bytes of the GNU build id in the notes of `span`.
fn build_id_in(span: ByteSpan<'_>) -> Option<ModuleIdentity> {
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
            return Some(ModuleIdentity { address, bytes });
        }
    }
    None
}

/// The bytes of a loaded module.
fn bytes_at(address: usize, len: usize) -> &'static [u8] {
    let first = core::ptr::with_exposed_provenance(address);
    // SAFETY: each caller in this file passes a range inside one segment of a module that contains a frame of this
    // thread's stack, or a range that `is_readable` checked. The module stays loaded as long as that frame exists, and
    // the loader changes none of these bytes after it has relocated the module.
    unsafe { core::slice::from_raw_parts(first, len) }
}

#[cfg(target_env = "gnu")]
mod find_object {
    use super::UnwindModule;
    use core::arch::asm;
    use core::ffi::c_void;

    /// glibc's `struct dl_find_object` of version 2.35; later versions use the reserved words.
    #[repr(C)]
    struct FoundObject {
        flags: u64,
        start: *mut c_void,
        end: *mut c_void,
        link_map: *mut c_void,
        header: *mut c_void,
        reserved: [u64; 7],
    }

    impl FoundObject {
        fn link_map(&self) -> Option<&LinkMap> {
            // SAFETY: `_dl_find_object` wrote this pointer. It is null, or the loader's record of a module that
            // contains a frame of this thread's stack and so stays loaded.
            unsafe { self.link_map.cast::<LinkMap>().as_ref() }
        }
    }

    type FindObject = unsafe extern "C" fn(*mut c_void, *mut FoundObject) -> i32;

    /// The first fields of glibc's `struct link_map`, which programs may use.
    #[repr(C)]
    struct LinkMap {
        bias: usize,
        path: *const core::ffi::c_char,
    }

    /// The module that contains `pc`, its load bias, and its path.
    pub(crate) fn link_map(pc: usize) -> Option<(UnwindModule, usize, &'static core::ffi::CStr)> {
        let found = ask(pc)??;
        let map = found.link_map()?;
        if map.path.is_null() {
            return None;
        }
        // SAFETY: the loader's record is valid as above, its path is not null, and the loader ends each path with a
        // 0 byte.
        let path = unsafe { core::ffi::CStr::from_ptr(map.path) };
        Some((module(&found), map.bias, path))
    }

    fn module(found: &FoundObject) -> UnwindModule {
        let (start, end) = (found.start.addr(), found.end.addr());
        let module = UnwindModule { start, end, header: found.header.addr() };
        // Linkers place the first segment of nearly all modules at address 0.
        let is_first = found.link_map().is_some_and(|map| map.bias == start);
        if is_first { module } else { module.whole() }
    }

    /// The module that contains `pc`. The outer value is `None` if this C library has no `_dl_find_object`.
    pub(crate) fn find(pc: usize) -> Option<Option<UnwindModule>> {
        Some(ask(pc)?.as_ref().map(module))
    }

    fn ask(pc: usize) -> Option<Option<FoundObject>> {
        let function = function()?;
        let mut found = core::mem::MaybeUninit::<FoundObject>::zeroed();
        // SAFETY: `_dl_find_object` accepts any `pc`, and writes at most the structure that `found` points to.
        let error = unsafe { function(core::ptr::without_provenance_mut(pc), found.as_mut_ptr()) };
        // SAFETY: `zeroed` initialized it, and every bit pattern is a valid `FoundObject`.
        let found = unsafe { found.assume_init() };
        Some((error == 0).then_some(found))
    }

    /// The function's address, from a weak reference. A call of `dlsym` would take the loader's lock.
    #[inline]
    fn function() -> Option<FindObject> {
        let address: usize;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this loads a word of the global offset table. The linker makes the word for this reference.
        unsafe {
            asm!(
                ".weak _dl_find_object",
                "mov {}, qword ptr [rip + _dl_find_object@GOTPCREL]",
                out(reg) address,
                options(nostack, pure, readonly, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: this loads a word of the global offset table. The linker makes the word for this reference.
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
        // SAFETY: null becomes `None`. Any other address is glibc's `_dl_find_object`, which has the type
        // `FindObject`.
        unsafe { core::mem::transmute::<*const c_void, Option<FindObject>>(pointer) }
    }
}

#[cfg(not(target_env = "gnu"))]
mod find_object {
    use super::UnwindModule;

    pub(crate) fn find(_pc: usize) -> Option<Option<UnwindModule>> {
        None
    }

    pub(crate) fn link_map(_pc: usize) -> Option<(UnwindModule, usize, &'static core::ffi::CStr)> {
        None
    }
}

/// Searches all loaded modules by `dl_iterate_phdr`. The walker holds none of its own locks during the call.
#[cold]
fn iterate(pc: usize) -> Option<UnwindModule> {
    struct ModuleSearch {
        pc: usize,
        found: Option<UnwindModule>,
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: `dl_iterate_phdr` passes a record that is valid during the callback.
        let info = unsafe { &*info };
        // SAFETY: `dl_iterate_phdr` passes the pointer to `search` below on, and no other code uses `search` during
        // the call.
        let search = unsafe { &mut *search.cast::<ModuleSearch>() };
        // SAFETY: the loader's record gives the address and the length of its own table of program headers.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let bias = info.dlpi_addr as usize;
        let mut module = UnwindModule { start: usize::MAX, end: 0, header: 0 };
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
    let mut search = ModuleSearch { pc, found: None };
    // SAFETY: the callback has the type that `dl_iterate_phdr` requires, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}
