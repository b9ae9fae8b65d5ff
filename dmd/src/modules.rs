//! The executable and the libraries that are loaded now: where they lie, and which builds they are.
//!
//! Looked up when a dump is written, never from a hook: the loader's lock may be held by a thread that
//! allocates.

use core::ffi::{CStr, c_int, c_void};
use core::slice;
use std::fmt::Write;
use std::os::unix::ffi::OsStringExt;

/// One loaded file.
#[derive(Debug)]
pub(crate) struct Module {
    /// As the loader names it; of the executable, where it lies.
    pub(crate) path: Vec<u8>,
    /// What is added to addresses in the file.
    pub(crate) bias: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Hexadecimal; empty if it has none.
    pub(crate) build_id: String,
}

/// In order of addresses.
#[derive(Debug)]
pub(crate) struct Modules(Vec<Module>);

/// Firefox's: longer frames are cut.
const LONGEST_FRAME: usize = 1023;

impl Modules {
    pub(crate) fn now() -> Self {
        let mut modules = Vec::<Module>::new();
        // SAFETY: `add` takes the data for what it is.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut modules).cast()) };
        modules.sort_by_key(|module| module.start);
        Self(modules)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Module> {
        self.0.iter()
    }

    /// The text of a frame. The number is a stand-in, since frames are shared by stacks.
    pub(crate) fn describe(&self, return_address: usize) -> String {
        // The call is before the place where it returns to.
        let pc = return_address.saturating_sub(1);
        let at = self.0.partition_point(|module| module.start <= pc);
        let module = at.checked_sub(1).and_then(|at| self.0.get(at)).filter(|module| pc < module.end);
        let mut text = match module {
            None => "#00: ??? (???:???)".to_owned(),
            Some(module) => {
                let mut text = "#00: ???[".to_owned();
                text.push_str(&String::from_utf8_lossy(&module.path));
                // Writing to a string does not fail.
                let _ = write!(text, " +0x{:x}]", pc.wrapping_sub(module.bias));
                text
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

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes what is valid during the call.
    let info = unsafe { &*info };
    // SAFETY: the list that `now` passed on.
    let modules = unsafe { &mut *data.cast::<Vec<Module>>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: so many headers are there.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let bias = info.dlpi_addr as usize;
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loaded().map(|header| bias.wrapping_add(header.p_vaddr as usize)).min();
    let end = loaded().map(|header| bias.wrapping_add((header.p_vaddr + header.p_memsz) as usize)).max();
    let (Some(start), Some(end)) = (start, end) else { return 0 };
    let name = if info.dlpi_name.is_null() {
        &[]
    } else {
        // SAFETY: the loader's names end in 0.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
    };
    let path = if name.is_empty() && modules.is_empty() {
        std::fs::read_link("/proc/self/exe").map(|path| path.into_os_string().into_vec()).unwrap_or_default()
    } else {
        name.to_vec()
    };
    let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
    let build_id = notes
        .filter_map(|header| {
            let address = bias.wrapping_add(header.p_vaddr as usize);
            // SAFETY: notes lie in a loaded segment.
            build_id(unsafe {
                slice::from_raw_parts(core::ptr::with_exposed_provenance(address), header.p_memsz as usize)
            })
        })
        .next()
        .unwrap_or_default();
    modules.push(Module { path, bias, start, end, build_id });
    0
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
            let mut text = String::with_capacity(2 * len);
            for byte in id {
                // Writing to a string does not fail.
                let _ = write!(text, "{byte:02x}");
            }
            return Some(text);
        }
        notes = rest.get(len.next_multiple_of(4)..)?;
    }
}
