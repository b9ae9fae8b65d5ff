//! The position of the program's thread-locals in each thread.

use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Architecture, LittleEndian};

/// The start of the program's thread-locals, relative to the value of the thread's register for thread-locals. The
/// program's own thread-locals are next to the address in this register (ELF Handling For Thread-Local Storage,
/// chapter 3 and section 3.4.6; aarch64's ABI, section 10).
pub(super) fn offset(file: &[u8], architecture: Architecture) -> Option<i64> {
    let elf = ElfFile64::<LittleEndian>::parse(file).ok()?;
    let mut headers = elf.elf_program_headers().iter();
    let header = headers.find(|header| header.p_type(LittleEndian) == elf::PT_TLS)?;
    let align = header.p_align(LittleEndian).max(1);
    match architecture {
        // The program's block ends at the address in the register.
        Architecture::X86_64 => {
            let size = header.p_memsz(LittleEndian).checked_next_multiple_of(align)?;
            i64::try_from(size).ok().map(|size| -size)
        }
        // Two words of the system precede the program's block.
        Architecture::Aarch64 => i64::try_from(align.max(16)).ok(),
        _ => None,
    }
}
