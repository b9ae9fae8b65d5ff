//! The parts of an ELF file that describe how it is loaded, and its symbol table. A file is untrusted: each number in
//! it is checked, and a part that would be outside of the file counts as absent.

/// The processor of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// 64-bit Arm, little-endian.
    Aarch64,
}

/// The processor that this crate is compiled for; `None` if it is neither of the two.
pub const THIS_MACHINE: Option<Machine> = if cfg!(target_arch = "x86_64") {
    Some(Machine::X86_64)
} else if cfg!(target_arch = "aarch64") {
    Some(Machine::Aarch64)
} else {
    None
};

/// A 64-bit little-endian ELF file.
#[derive(Clone, Copy, Debug)]
pub struct ElfFile<'f> {
    bytes: &'f [u8],
    machine: Machine,
}

/// A program header.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// `PT_LOAD` and so on.
    pub kind: u32,
    /// Bits: 1 executable, 2 writable, 4 readable.
    pub flags: u32,
    /// The position in the file.
    pub offset: u64,
    /// The address.
    pub address: u64,
    /// The number of bytes in the file.
    pub file_bytes: u64,
    /// The number of bytes in memory.
    pub memory_bytes: u64,
}

/// The kind of a segment that is loaded.
pub const LOAD: u32 = 1;
/// The kind of the segment with the dynamic section.
pub const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;
const NOTE: u32 = 4;
/// The kind of the segment that is read-only after relocation.
pub const RELRO: u32 = 0x6474_e552;
/// The flag of executable segments.
pub const EXECUTABLE: u32 = 1;
/// The flag of writable segments.
pub const WRITABLE: u32 = 2;

/// A section header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    name: u32,
    pub(crate) kind: u32,
    offset: u64,
    bytes: u64,
    link: u32,
}

const SYMBOL_TABLE: u32 = 2;
const DYNAMIC_SYMBOLS: u32 = 11;
const BUILD_ID: u32 = 3;
const NO_BITS: u32 = 8;

/// A symbol with a name.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'f> {
    /// The name, without the 0 at its end.
    pub name: &'f [u8],
    /// The address.
    pub address: u64,
    /// The number of bytes; 0 if it is unknown.
    pub bytes: u64,
    /// Whether the symbol is a function that the file defines.
    pub is_function: bool,
    /// Whether other files cannot refer to the symbol.
    pub is_local: bool,
}

/// The symbol table of a file.
#[derive(Clone, Copy, Debug)]
pub struct SymbolTable<'f> {
    entries: &'f [u8],
    names: &'f [u8],
}

/// The little-endian number in `length` bytes at a position. `length` is at most 8.
pub(crate) fn number(bytes: &[u8], at: u64, length: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

impl<'f> ElfFile<'f> {
    /// Returns `None` if the bytes are not a 64-bit little-endian ELF file, or if the file is for a processor that
    /// [`Machine`] does not list.
    pub fn parse(bytes: &'f [u8]) -> Option<Self> {
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let machine = match number(bytes, 18, 2)? {
            62 => Machine::X86_64,
            183 => Machine::Aarch64,
            _ => return None,
        };
        Some(Self { bytes, machine })
    }

    /// The processor.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Whether the loader may place the file at any address.
    pub fn is_relocatable(&self) -> bool {
        number(self.bytes, 16, 2) == Some(3)
    }

    fn number(&self, at: u64, length: usize) -> Option<u64> {
        number(self.bytes, at, length)
    }

    /// The bytes of a part of the file. `None` if the file ends before the end of the part.
    pub(crate) fn part(&self, offset: u64, length: u64) -> Option<&'f [u8]> {
        let offset = usize::try_from(offset).ok()?;
        self.bytes.get(offset..offset.checked_add(usize::try_from(length).ok()?)?)
    }

    /// The program headers.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + 'f {
        let file = *self;
        let first = file.number(32, 8).unwrap_or(u64::MAX);
        let size = file.number(54, 2).unwrap_or_default();
        let count = file.number(56, 2).unwrap_or_default();
        (0..count).map_while(move |index| {
            let at = first.checked_add(index * size)?;
            let field = |offset: u64, length| file.number(at.checked_add(offset)?, length);
            Some(Segment {
                kind: field(0, 4)? as u32,
                flags: field(4, 4)? as u32,
                offset: field(8, 8)?,
                address: field(16, 8)?,
                file_bytes: field(32, 8)?,
                memory_bytes: field(40, 8)?,
            })
        })
    }

    /// The segments that are loaded.
    pub fn loaded(&self) -> impl Iterator<Item = Segment> + 'f {
        self.segments().filter(|segment| segment.kind == LOAD)
    }

    /// The bytes of a segment that are in the file.
    pub fn contents(&self, segment: &Segment) -> Option<&'f [u8]> {
        self.part(segment.offset, segment.file_bytes)
    }

    pub(crate) fn sections(&self) -> impl Iterator<Item = Section> + 'f {
        let file = *self;
        let first = file.number(40, 8).filter(|first| *first != 0).unwrap_or(u64::MAX);
        let size = file.number(58, 2).unwrap_or_default();
        let mut count = file.number(60, 2).unwrap_or_default();
        if count == 0 {
            // If a file has more sections than fit into the field, the first section contains their number.
            count = first.checked_add(32).and_then(|at| file.number(at, 8)).unwrap_or_default();
        }
        (0..count).map_while(move |index| {
            let at = first.checked_add(index.checked_mul(size)?)?;
            let field = |offset: u64, length| file.number(at.checked_add(offset)?, length);
            Some(Section {
                name: field(0, 4)? as u32,
                kind: field(4, 4)? as u32,
                offset: field(24, 8)?,
                bytes: field(32, 8)?,
                link: field(40, 4)? as u32,
            })
        })
    }

    fn section_bytes(&self, section: &Section) -> Option<&'f [u8]> {
        if section.kind == NO_BITS { None } else { self.part(section.offset, section.bytes) }
    }

    /// The contents of the section with this name.
    pub fn section(&self, name: &[u8]) -> Option<&'f [u8]> {
        let index = self.number(62, 2)?;
        let names = self.sections().nth(index as usize)?;
        let names = self.section_bytes(&names)?;
        let section = self.sections().find(|section| text(names, section.name) == Some(name))?;
        self.section_bytes(&section)
    }

    /// The symbol table (`.symtab`). `None` if the file is stripped.
    pub fn symbols(&self) -> Option<SymbolTable<'f>> {
        self.symbols_of(SYMBOL_TABLE)
    }

    /// The symbols that other files can use (`.dynsym`). `None` for a program: the loader searches the program first,
    /// so the program's references lead to its own functions.
    pub(crate) fn library_symbols(&self) -> Option<SymbolTable<'f>> {
        let is_program = self.segments().any(|segment| segment.kind == INTERPRETER);
        if is_program { None } else { self.symbols_of(DYNAMIC_SYMBOLS) }
    }

    /// The symbols that a program defines for itself and its libraries. `None` for a library.
    pub(crate) fn program_symbols(&self) -> Option<SymbolTable<'f>> {
        let is_program = self.segments().any(|segment| segment.kind == INTERPRETER);
        if is_program { self.symbols_of(DYNAMIC_SYMBOLS) } else { None }
    }

    fn symbols_of(&self, kind: u32) -> Option<SymbolTable<'f>> {
        let section = self.sections().find(|section| section.kind == kind)?;
        let names = self.sections().nth(section.link as usize)?;
        Some(SymbolTable { entries: self.section_bytes(&section)?, names: self.section_bytes(&names)? })
    }

    /// Whether the file's constant data contains a text.
    pub fn contains_text(&self, text: &[u8]) -> bool {
        let Some((first, rest)) = text.split_first() else { return true };
        let Some(mut texts) = self.section(b".rodata") else { return false };
        while let Some(at) = texts.iter().position(|byte| byte == first) {
            texts = &texts[at + 1..];
            if texts.starts_with(rest) {
                return true;
            }
        }
        false
    }

    /// The build ID, which the file shares with its separate debug file.
    pub fn build_id(&self) -> Option<&'f [u8]> {
        self.segments().filter(|segment| segment.kind == NOTE).find_map(|segment| {
            let mut notes = self.contents(&segment)?;
            loop {
                let field = |at| number(notes, at, 4).and_then(|number| usize::try_from(number).ok());
                let (name, length, kind) = (field(0)?, field(4)?, field(8)? as u32);
                let start = name.checked_next_multiple_of(4)?.checked_add(12)?;
                let id = notes.get(start..start.checked_add(length)?)?;
                if kind == BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
                    return Some(id);
                }
                notes = notes.get(start.checked_add(length.checked_next_multiple_of(4)?)?..)?;
            }
        })
    }
}

/// The text that starts at a position and ends in 0.
fn text(names: &[u8], at: u32) -> Option<&[u8]> {
    let rest = names.get(at as usize..)?;
    rest.get(..rest.iter().position(|byte| *byte == 0)?)
}

impl<'f> SymbolTable<'f> {
    /// The names that the file uses and does not define.
    pub(crate) fn imported(self) -> impl Iterator<Item = &'f [u8]> {
        let Self { entries, names } = self;
        let undefined = entries.chunks_exact(24).filter(|entry| entry[6..8] == [0, 0]);
        undefined.filter_map(move |entry| text(names, number(entry, 0, 4)? as u32))
    }

    /// The symbols of the table that the file defines.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'f>> + 'f {
        let Self { entries, names } = *self;
        entries.chunks_exact(24).filter_map(move |entry| {
            let section = number(entry, 6, 2)?;
            // Undefined symbols have section 0. Numbers from 0xff00 on have special meanings and are not sections.
            if section == 0 || section >= 0xff00 {
                return None;
            }
            let name = text(names, number(entry, 0, 4)? as u32)?;
            // Code in assembly may have no type (0). Functions have 2, and indirect functions 10.
            let is_function = matches!(entry[4] & 15, 0 | 2) && !name.is_empty();
            let (address, bytes) = (number(entry, 8, 8)?, number(entry, 16, 8)?);
            Some(Symbol { name, address, bytes, is_function, is_local: entry[4] >> 4 == 0 })
        })
    }
}
