//! The executable and the libraries that are or were loaded: their places, and which builds they are.
//!
//! A dump looks them up; a hook never does, since a thread that allocates may hold the loader's lock. In the child
//! of a fork that lock may be held for ever, so there a dump asks the kernel instead.

mod mapped;

use core::ffi::{CStr, c_int, c_void};
use core::slice;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::system::{fork, process};
use crate::tables::seen_modules;
use crate::tables::trace_id::TraceId;
use crate::tables::seen_modules::{Loaded, Sample, sample_at};

/// One loaded file.
#[derive(Debug)]
pub(crate) struct Module {
    /// The loader's name; for the executable, its path. If a later build is at the path now, the name also has the
    /// build.
    pub(crate) path: Vec<u8>,
    /// The difference between addresses in the process and in the file.
    pub(crate) bias: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Hexadecimal; empty if the file has none.
    pub(crate) build_id: String,
    /// A sample of a module without a build id; otherwise 0.
    sample: Sample,
    /// If the module is not loaded any more, the first node of the tree that has it.
    pub(crate) since: Option<TraceId>,
}

/// Loaded modules in order of addresses, then unloaded ones, the newest first.
#[derive(Debug)]
pub(crate) struct Modules {
    all: Vec<Module>,
    loaded: usize,
}

/// This many digits of a build id distinguish two builds of one library.
const SHORT_ID: usize = 8;

/// Firefox's limit: longer frames are cut.
const LONGEST_FRAME: usize = 1023;

impl Modules {
    pub(crate) fn now() -> Self {
        let by_loader = !fork::is_child();
        let mut modules = if by_loader { loaded() } else { mapped::modules() };
        modules.sort_by_key(|module| module.start);
        let loaded = modules.len();
        for seen in seen_modules::iter() {
            let Loaded { start, end, bias, path, build_id, sample, .. } = seen.module;
            let (mut path, build_id) = (absolute(path.to_bytes()), hexadecimal(build_id));
            let is_build = |module: &Module| (&module.build_id, module.sample) == (&build_id, sample);
            // The kernel's paths contain no links.
            let is_it = |module: &Module| {
                (module.start, module.end) == (start, end)
                    && is_build(module)
                    && (module.path == path || !by_loader)
            };
            if !modules[..loaded].iter().any(is_it) {
                // A later build is at the path: symbols of this one must not be looked up there.
                if modules.iter().any(|later| later.path == path && !is_build(later)) {
                    let id = if build_id.is_empty() { hexadecimal(&sample) } else { build_id.clone() };
                    let short = id.get(..SHORT_ID).unwrap_or(&id);
                    path.extend_from_slice(format!(" (build {short})").as_bytes());
                }
                modules.push(Module { path, bias, start, end, build_id, sample, since: Some(seen.since) });
            }
        }
        Self { all: modules, loaded }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Module> {
        self.all.iter()
    }

    /// The module of a return address that a node of the tree has.
    pub(crate) fn find(&self, node: TraceId, return_address: usize) -> Option<usize> {
        // The call comes before the address where it returns to.
        let pc = return_address.saturating_sub(1);
        let (loaded, unloaded) = self.all.split_at(self.loaded);
        let holds = |module: &Module| (module.start..module.end).contains(&pc);
        let at = loaded.partition_point(|module| module.start <= pc);
        let now = at.checked_sub(1).filter(|at| holds(&loaded[*at]));
        if !unloaded.iter().any(holds) {
            return now;
        }
        // Of the modules that were at this place, take the last one when the node was made.
        let seen = seen_modules::iter().find(|seen| seen.holds(pc) && seen.since.0 <= node.0);
        let then = seen.and_then(|seen| {
            let (since, start) = (Some(seen.since), seen.module.start);
            unloaded.iter().position(|module| (module.since, module.start) == (since, start))
        });
        then.map(|then| self.loaded + then).or(now)
    }

    /// The call before a return address, as an address in the file of a module.
    pub(crate) fn offset(&self, module: usize, return_address: usize) -> Option<u64> {
        let pc = return_address.saturating_sub(1);
        self.all.get(module).map(|module| pc.wrapping_sub(module.bias) as u64)
    }

    /// The text of a frame. Its number is always 0, since stacks share frames.
    pub(crate) fn describe(&self, module: Option<usize>, return_address: usize) -> String {
        let place =
            module.and_then(|module| Some((self.all.get(module)?, self.offset(module, return_address)?)));
        let mut text = match place {
            None => "#00: ??? (???:???)".to_owned(),
            Some((module, offset)) => {
                format!("#00: ???[{} +0x{offset:x}]", String::from_utf8_lossy(&module.path))
            }
        };
        let mut len = text.len().min(LONGEST_FRAME);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        text.truncate(len);
        text
    }
}

/// A program may load a library by a path relative to its folder at that time, which mostly is the first one.
fn absolute(path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") || !path.contains(&b'/') {
        return path.to_vec();
    }
    process::absolute(Path::new(OsStr::from_bytes(path))).into_os_string().into_vec()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The modules that the loader has.
fn loaded() -> Vec<Module> {
    let mut modules = Vec::<Module>::new();
    // SAFETY: `add` takes the data for the list that it is, and the loader keeps neither.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut modules).cast()) };
    modules
}

/// How often the loader has loaded and unloaded modules.
pub(crate) fn changes() -> (u64, u64) {
    let mut changes = (0, 0);
    // SAFETY: `count` takes the data for the pair that it is, and the loader keeps neither.
    unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut changes).cast()) };
    changes
}

unsafe extern "C" fn count(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a record that is valid during the call.
    let info = unsafe { &*info };
    // SAFETY: `changes` passes its pair, and waits meanwhile.
    unsafe { data.cast::<(u64, u64)>().write((info.dlpi_adds, info.dlpi_subs)) };
    // All records have the same counts.
    1
}

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a record that is valid during the call.
    let info = unsafe { &*info };
    // SAFETY: `loaded` passes its list, and waits meanwhile.
    let modules = unsafe { &mut *data.cast::<Vec<Module>>() };
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
    let is_program = name.is_empty() && modules.is_empty();
    let notes = |address: usize, bytes: usize| {
        // SAFETY: the loader's headers place notes in a loaded segment.
        let notes = unsafe { slice::from_raw_parts(core::ptr::with_exposed_provenance(address), bytes) };
        build_id(notes)
    };
    if let Some(mut module) = Module::new(info.dlpi_addr as usize, headers, notes) {
        module.path = if is_program { program(module.start) } else { absolute(name) };
        modules.push(module);
    }
    0
}

impl Module {
    /// A loaded module, by its program headers. Its path is still missing.
    fn new(
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
        let sample = if build_id.is_empty() { sample_at(start) } else { Sample::default() };
        Some(Self { path: Vec::new(), bias, start, end, build_id, sample, since: None })
    }
}

/// The path of the executable, which the loader does not name. If the loader was started with the executable as its
/// argument, the kernel takes the loader for the executable. Then the path comes from the mappings.
fn program(start: usize) -> Vec<u8> {
    // SAFETY: `getauxval` reads a vector that the kernel made and nobody changes.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) };
    if loader != 0 {
        let path = std::fs::read_link("/proc/self/exe");
        return path.map(|path| path.into_os_string().into_vec()).unwrap_or_default();
    }
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let begin = format!("{start:x}-");
    // The path is the last of six columns, and may contain blanks.
    let line = maps.split(|byte| *byte == b'\n').find(|line| line.starts_with(begin.as_bytes()));
    let path = line.and_then(|line| line.get(line.iter().position(|byte| *byte == b'/')?..));
    path.unwrap_or_default().to_vec()
}

/// Finds the note of type 3 by "GNU".
fn build_id(mut notes: &[u8]) -> Option<String> {
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
