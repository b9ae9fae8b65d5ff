//! The modules that the loader lists, on Windows: images in Microsoft's format PE.

use core::ffi::c_void;
use core::ptr::null_mut;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::windows::ffi::OsStringExt;
use std::path::Path;

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::GetModuleFileNameW;
use windows_sys::Win32::System::ProcessStatus::{K32EnumProcessModules, K32GetModuleInformation, MODULEINFO};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::DumpModule;

/// The maximum number of modules that are listed.
const MOST: usize = 4096;
const LONGEST_PATH: usize = 32 << 10;

/// The modules that the loader lists.
pub(super) fn modules() -> Vec<DumpModule> {
    let mut handles: Vec<HMODULE> = vec![null_mut(); MOST];
    let (room, mut needed) = (size_of_val(handles.as_slice()) as u32, 0);
    // SAFETY: the function has no precondition.
    let process = unsafe { GetCurrentProcess() };
    // SAFETY: the list has this many bytes, and `needed` is a valid place for a number.
    if unsafe { K32EnumProcessModules(process, handles.as_mut_ptr(), room, &raw mut needed) } == 0 {
        return Vec::new();
    }
    handles.truncate(needed as usize / size_of::<HMODULE>());
    handles.into_iter().filter_map(|handle| module(process, handle)).collect()
}

fn module(process: *mut c_void, handle: HMODULE) -> Option<DumpModule> {
    let mut about = MODULEINFO { lpBaseOfDll: null_mut(), SizeOfImage: 0, EntryPoint: null_mut() };
    // SAFETY: `about` has this many bytes. For a module that was unloaded, the system returns an error.
    let answer =
        unsafe { K32GetModuleInformation(process, handle, &raw mut about, size_of::<MODULEINFO>() as u32) };
    if answer == 0 {
        return None;
    }
    let mut name = vec![0; LONGEST_PATH];
    // SAFETY: `name` has this many words.
    let length = unsafe { GetModuleFileNameW(handle, name.as_mut_ptr(), LONGEST_PATH as u32) };
    let name = OsString::from_wide(&name[..(length as usize).min(LONGEST_PATH)]);
    let start = about.lpBaseOfDll.addr();
    let bias = start.wrapping_sub(wanted_start(Path::new(&name)).unwrap_or(start as u64) as usize);
    let path = name.to_string_lossy().into_owned().into_bytes();
    let end = start.wrapping_add(about.SizeOfImage as usize);
    Some(DumpModule { path, bias, start, end, ..DumpModule::default() })
}

/// The preferred load address of the file, to which its symbols are relative: the field `ImageBase` of its optional
/// header. The header in memory has the actual address of the image instead.
fn wanted_start(path: &Path) -> Option<u64> {
    const OFFSET_OF_HEADER: usize = 0x3c;
    /// Bytes from the signature to the optional header.
    const OPTIONAL: usize = 24;
    const OF_64_BITS: u16 = 0x20b;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(4096).read_to_end(&mut bytes).ok()?;
    let header = bytes.get(OFFSET_OF_HEADER..OFFSET_OF_HEADER + 4)?;
    let optional = bytes.get(u32::from_le_bytes(header.try_into().ok()?) as usize..)?.get(OPTIONAL..)?;
    let magic = u16::from_le_bytes(optional.get(..2)?.try_into().ok()?);
    let start = u64::from_le_bytes(optional.get(24..32)?.try_into().ok()?);
    (magic == OF_64_BITS).then_some(start)
}
