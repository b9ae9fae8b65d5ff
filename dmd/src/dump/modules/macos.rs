//! The modules that the loader lists, on macOS: Mach-O images, as Apple's `mach-o/loader.h` describes them.

use core::ffi::{CStr, c_char};
use core::slice;

use mach2::dyld::{
    _dyld_get_image_header, _dyld_get_image_name, _dyld_get_image_vmaddr_slide, _dyld_image_count,
};

use super::{DumpModule, absolute, hexadecimal};

/// `mach_header_64` starts with the number `MAGIC`, and has `HEADER` bytes.
const MAGIC: u32 = 0xfeed_facf;
const HEADER: usize = 32;

const LC_SEGMENT_64: u32 = 0x19;
const LC_UUID: u32 = 0x1b;

/// The images. A program must not unload a library while it writes a dump: macOS has no call that prevents it.
pub(super) fn modules() -> Vec<DumpModule> {
    // SAFETY: the function has no precondition.
    let count = unsafe { _dyld_image_count() };
    (0..count).filter_map(module).collect()
}

fn module(index: u32) -> Option<DumpModule> {
    // SAFETY: the loader returns null for a number that is too large.
    let header = unsafe { _dyld_get_image_header(index) };
    // SAFETY: as above.
    let slide = unsafe { _dyld_get_image_vmaddr_slide(index) } as usize;
    // SAFETY: as above.
    let name = unsafe { _dyld_get_image_name(index) };
    // SAFETY: the pointer is null or points to the header of a loaded image.
    let about = unsafe { header.as_ref() }.filter(|header| header.magic == MAGIC)?;
    let commands = header.cast::<u8>().wrapping_add(HEADER);
    // SAFETY: the loader has mapped `sizeofcmds` bytes of commands behind the header.
    let commands = unsafe { slice::from_raw_parts(commands, about.sizeofcmds as usize) };
    let mut module = DumpModule { path: path(name), bias: slide, ..DumpModule::default() };
    for (kind, command) in LoadCommands(commands) {
        match kind {
            // The other segments of a library in the shared cache are at distant addresses.
            LC_SEGMENT_64 if command.get(8..24) == Some(b"__TEXT\0\0\0\0\0\0\0\0\0\0") => {
                module.start = slide.wrapping_add(number(command, 24)?);
                module.end = module.start.wrapping_add(number(command, 32)?);
            }
            LC_UUID => module.build_id = hexadecimal(command.get(8..24)?),
            _ => {}
        }
    }
    (module.end > module.start).then_some(module)
}

fn path(name: *const c_char) -> Vec<u8> {
    if name.is_null() {
        return Vec::new();
    }
    // SAFETY: the loader's names end in 0.
    absolute(unsafe { CStr::from_ptr(name) }.to_bytes())
}

fn number(command: &[u8], at: usize) -> Option<usize> {
    let bytes = command.get(at..at + size_of::<u64>())?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?) as usize)
}

/// The load commands, each with its kind.
struct LoadCommands<'c>(&'c [u8]);

impl<'c> Iterator for LoadCommands<'c> {
    type Item = (u32, &'c [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let word = |at: usize| Some(u32::from_ne_bytes(self.0.get(at..at + 4)?.try_into().ok()?));
        let (kind, bytes) = (word(0)?, word(4)? as usize);
        let (command, rest) = self.0.split_at_checked(bytes.max(8))?;
        self.0 = rest;
        Some((kind, command))
    }
}
