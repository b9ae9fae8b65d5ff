//! The modules that the loader lists, on Linux.

use core::ffi::{CStr, c_int, c_void};
use core::slice;
use std::os::unix::ffi::OsStringExt;

use super::{DumpModule, absolute, hexadecimal};
use crate::tables::seen_modules::{ModuleSample, sample_at};

/// The modules that the loader lists.
pub(super) fn modules() -> Vec<DumpModule> {
    let mut modules = Vec::<DumpModule>::new();
    // SAFETY: the data is the list that `add` expects, and the loader uses both pointers only during the call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut modules).cast()) };
    modules
}

/// The numbers of modules that the loader has loaded and unloaded so far.
pub(crate) fn changes() -> (u64, u64) {
    let mut changes = (0, 0);
    // SAFETY: the data is the pair that `count` expects, and the loader uses both pointers only during the call.
    unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut changes).cast()) };
    changes
}

unsafe extern "C" fn count(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a record that is valid during the call.
    let info = unsafe { &*info };
    // SAFETY: `changes` passes its pair, and waits during the call.
    unsafe { data.cast::<(u64, u64)>().write((info.dlpi_adds, info.dlpi_subs)) };
    // One record is enough: all records have the same counts.
    1
}

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a record that is valid during the call.
    let info = unsafe { &*info };
    // SAFETY: `modules` passes its list, and waits during the call.
    let modules = unsafe { &mut *data.cast::<Vec<DumpModule>>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's record has this many headers.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let name = if info.dlpi_name.is_null() {
        &[]
    } else {
        // SAFETY: the loader's names end in 0.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
    };
    // The second name comes from musl. Another process would read it as the name of its own program.
    let is_program = modules.is_empty() && (name.is_empty() || name == b"/proc/self/exe");
    let notes = |address: usize, bytes: usize| {
        // SAFETY: the notes that the loader's headers describe are in a loaded segment.
        let notes = unsafe { slice::from_raw_parts(core::ptr::with_exposed_provenance(address), bytes) };
        build_id(notes)
    };
    if let Some(mut module) = DumpModule::new(info.dlpi_addr as usize, headers, notes) {
        module.path = if is_program { program(module.start) } else { absolute(name) };
        modules.push(module);
    }
    0
}

impl DumpModule {
    /// A loaded module, from its program headers. The path is not set yet.
    pub(super) fn new(
        bias: usize,
        headers: &[libc::Elf64_Phdr],
        build_id_at: impl Fn(usize, usize) -> Option<String>,
    ) -> Option<Self> {
        let of_type = |kind| headers.iter().filter(move |header| header.p_type == kind);
        let at = |offset: u64| bias.wrapping_add(offset as usize);
        let start = of_type(libc::PT_LOAD).map(|header| at(header.p_vaddr)).min()?;
        let end =
            of_type(libc::PT_LOAD).map(|header| at(header.p_vaddr.wrapping_add(header.p_memsz))).max()?;
        let build_id = of_type(libc::PT_NOTE)
            .find_map(|header| build_id_at(at(header.p_vaddr), header.p_memsz as usize))
            .unwrap_or_default();
        let sample = if build_id.is_empty() { sample_at(start) } else { ModuleSample::default() };
        Some(Self { path: Vec::new(), bias, start, end, build_id, sample, since: None })
    }
}

/// The path of the executable, which the loader does not name. If the program was started as an argument of the
/// loader, the kernel takes the loader for the executable. Then the path comes from the mappings.
fn program(start: usize) -> Vec<u8> {
    // SAFETY: `getauxval` reads a vector that the kernel made and that does not change.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) };
    if loader != 0 {
        let path = std::fs::read_link("/proc/self/exe");
        return path.map(|path| path.into_os_string().into_vec()).unwrap_or_default();
    }
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let begin = format!("{start:x}-");
    // The path is the last of six columns, and may contain spaces.
    let line = maps.split(|byte| *byte == b'\n').find(|line| line.starts_with(begin.as_bytes()));
    let path = line.and_then(|line| line.get(line.iter().position(|byte| *byte == b'/')?..));
    path.unwrap_or_default().to_vec()
}

/// Finds the build id: the note of type 3 by "GNU".
pub(super) fn build_id(mut notes: &[u8]) -> Option<String> {
    const GNU_BUILD_ID: u32 = 3;
    loop {
        let (header, rest) = notes.split_at_checked(12)?;
        let word = |at: usize| {
            header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
        };
        let (name_len, len) = (word(0) as usize, word(4) as usize);
        let (name, rest) = rest.split_at_checked(name_len.next_multiple_of(4))?;
        let id = rest.get(..len)?;
        if word(8) == GNU_BUILD_ID && name == b"GNU\0" {
            return Some(hexadecimal(id));
        }
        notes = rest.get(len.next_multiple_of(4)..)?;
    }
}
