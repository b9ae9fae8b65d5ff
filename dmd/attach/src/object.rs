//! An ELF object in the memory of the process. Its tables are read from there: the file may be deleted, replaced or
//! in another container.

use core::cell::OnceCell;

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, ParsedEhFrameHdr};

use crate::target::{TargetMapping, TargetProcess};

/// A table with more bytes is not read.
const MOST: u64 = 256 << 20;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_EH_FRAME: u32 = 0x6474_e550;

/// A function, or a variable, that an object exports.
#[derive(Debug)]
pub(crate) struct ExportedFunction {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: String,
}

/// The unwind tables.
#[derive(Debug)]
pub(crate) struct UnwindTables {
    frames: Vec<u8>,
    header: Vec<u8>,
    pub(crate) bases: BaseAddresses,
}

#[derive(Debug)]
pub(crate) struct LoadedObject {
    pub(crate) path: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The start and the end of each mapping with code.
    code: Vec<(u64, u64)>,
    bias: u64,
    headers: Vec<ProgramHeader>,
    functions: OnceCell<Vec<ExportedFunction>>,
    tables: OnceCell<Option<UnwindTables>>,
}

#[derive(Clone, Copy, Debug)]
struct ProgramHeader {
    kind: u32,
    address: u64,
    bytes: u64,
}

impl LoadedObject {
    /// All objects of the process.
    pub(crate) fn all(target: &TargetProcess, mappings: &[TargetMapping]) -> Vec<Self> {
        let mut objects: Vec<Self> = Vec::new();
        for (number, mapping) in mappings.iter().enumerate() {
            if mapping.offset != 0 || (mapping.file.1 == 0 && mapping.path != "[vdso]") {
                continue;
            }
            if objects.last().is_some_and(|last| mapping.start < last.end) {
                continue;
            }
            let Some((bias, headers)) = program_headers(target, mapping.start) else { continue };
            let loads = headers.iter().filter(|header| header.kind == PT_LOAD);
            let end = loads.map(|header| header.address.wrapping_add(bias) + header.bytes).max();
            let end = end.unwrap_or(mapping.end).max(mapping.end);
            let own = mappings[number..].iter().take_while(|other| other.start < end);
            let code = own.filter(|other| other.is_code && other.file == mapping.file);
            let code = code.map(|other| (other.start, other.end)).collect();
            objects.push(Self {
                path: mapping.path.clone(),
                start: mapping.start,
                end,
                code,
                bias,
                headers,
                functions: OnceCell::new(),
                tables: OnceCell::new(),
            });
        }
        objects
    }

    /// Whether the address is in the code.
    pub(crate) fn has_code_at(&self, address: u64) -> bool {
        self.code.iter().any(|(start, end)| (*start..*end).contains(&address))
    }

    /// The name of the file, without folders.
    pub(crate) fn name(&self) -> &str {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        path.rsplit('/').next().unwrap_or(path)
    }

    /// The functions that the object exports, by address.
    pub(crate) fn functions(&self, target: &TargetProcess) -> &[ExportedFunction] {
        self.functions.get_or_init(|| self.read_functions(target).unwrap_or_default())
    }

    /// The address of an exported function.
    pub(crate) fn function(&self, target: &TargetProcess, name: &str) -> Option<u64> {
        self.functions(target).iter().find(|function| function.name == name).map(|function| function.start)
    }

    /// Whether the object is the library that attachments load.
    pub(crate) fn is_recorder(&self, target: &TargetProcess) -> bool {
        let may_be = self.path.contains("(deleted)") || self.name() == "libdmd.so";
        may_be && self.function(target, "DMDDetach").is_some()
    }

    fn read_functions(&self, target: &TargetProcess) -> Option<Vec<ExportedFunction>> {
        const SYMBOL: usize = 24;
        let dynamic = self.headers.iter().find(|header| header.kind == PT_DYNAMIC)?;
        let dynamic = read(target, dynamic.address.wrapping_add(self.bias), dynamic.bytes)?;
        let (mut symbols, mut strings, mut string_bytes) = (0, 0, 0);
        for entry in dynamic.as_chunks::<16>().0 {
            let [tag, value] = [&entry[..8], &entry[8..]]
                .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
            // The loader has replaced most offsets by addresses.
            let address =
                if (self.start..self.end).contains(&value) { value } else { value.wrapping_add(self.bias) };
            match tag {
                0 => break,
                5 => strings = address,
                6 => symbols = address,
                10 => string_bytes = value,
                _ => {}
            }
        }
        // Linkers put the names directly, or nearly so, behind the symbols.
        let bytes = strings.checked_sub(symbols).filter(|bytes| *bytes > 0)?;
        let names = read(target, strings, string_bytes)?;
        let table = read(target, symbols, bytes)?;
        let mut functions: Vec<_> = table
            .chunks_exact(SYMBOL)
            .filter_map(|symbol| {
                let word = |at: usize| Some(u64::from_le_bytes(symbol.get(at..at + 8)?.try_into().ok()?));
                const DATA: u8 = 1;
                const FUNCTION: u8 = 2;
                let (kind, section) = (symbol[4] & 15, u16::from_le_bytes([symbol[6], symbol[7]]));
                if ![DATA, FUNCTION].contains(&kind) || section == 0 {
                    return None;
                }
                let at = u32::from_le_bytes(symbol[..4].try_into().ok()?) as usize;
                let name = names.get(at..)?.split(|byte| *byte == 0).next()?;
                let start = word(8)?.wrapping_add(self.bias);
                let name = String::from_utf8_lossy(name).into_owned();
                Some(ExportedFunction { start, end: start + word(16)?, name })
            })
            .collect();
        functions.sort_by_key(|function| function.start);
        Some(functions)
    }

    /// The unwind tables; `None` if the object has none.
    pub(crate) fn tables(&self, target: &TargetProcess) -> Option<&UnwindTables> {
        self.tables.get_or_init(|| self.read_tables(target)).as_ref()
    }

    fn read_tables(&self, target: &TargetProcess) -> Option<UnwindTables> {
        let header = self.headers.iter().find(|header| header.kind == PT_EH_FRAME)?;
        let header_at = header.address.wrapping_add(self.bias);
        let header = read(target, header_at, header.bytes)?;
        let mut bases = BaseAddresses::default().set_eh_frame_hdr(header_at);
        let parsed = EhFrameHdr::new(&header, LittleEndian).parse(&bases, 8).ok()?;
        let gimli::Pointer::Direct(frames_at) = parsed.eh_frame_ptr() else { return None };
        let segment = self.headers.iter().filter(|header| header.kind == PT_LOAD).find_map(|header| {
            let start = header.address.wrapping_add(self.bias);
            (start..start + header.bytes).contains(&frames_at).then_some(start + header.bytes)
        });
        // The section lies in one segment, mostly with the header before it.
        let end = if header_at > frames_at { header_at } else { segment? };
        let frames = read(target, frames_at, end - frames_at)?;
        bases = bases.set_eh_frame(frames_at);
        Some(UnwindTables { frames, header, bases })
    }
}

impl UnwindTables {
    pub(crate) fn frames(&self) -> EhFrame<EndianSlice<'_, LittleEndian>> {
        EhFrame::new(&self.frames, LittleEndian)
    }

    pub(crate) fn header(&self) -> Option<ParsedEhFrameHdr<EndianSlice<'_, LittleEndian>>> {
        EhFrameHdr::new(&self.header, LittleEndian).parse(&self.bases, 8).ok()
    }
}

fn read(target: &TargetProcess, address: u64, bytes: u64) -> Option<Vec<u8>> {
    if bytes > MOST {
        return None;
    }
    let mut contents = vec![0; bytes as usize];
    target.read(address, &mut contents).then_some(contents)
}

/// The bias and the program headers of the object that starts at an address; `None` if no object starts there.
fn program_headers(target: &TargetProcess, start: u64) -> Option<(u64, Vec<ProgramHeader>)> {
    const HEADER: usize = 56;
    let mut page = [0; 4096];
    if !target.read(start, &mut page) || !page.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let word = |at: usize| Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?));
    let offset = usize::try_from(word(32)?).ok()?;
    let count = usize::from(u16::from_le_bytes([page[56], page[57]]));
    let headers: Vec<_> = (0..count)
        .filter_map(|number| {
            let at = offset.checked_add(number * HEADER)?;
            let kind = u32::from_le_bytes(page.get(at..at + 4)?.try_into().ok()?);
            Some(ProgramHeader { kind, address: word(at + 16)?, bytes: word(at + 40)? })
        })
        .collect();
    let first = headers.iter().filter(|header| header.kind == PT_LOAD).map(|header| header.address).min()?;
    Some((start.wrapping_sub(first & !4095), headers))
}
