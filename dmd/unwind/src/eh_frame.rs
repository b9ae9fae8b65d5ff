//! Finds the frame description entry (FDE) of a pc: by the sorted table of `.eh_frame_hdr` if there is one, otherwise
//! by a search through the entries of `.eh_frame`.

use crate::reader::{ByteReader, ByteSpan, encoding};

/// The unwind sections of one module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EhFrameSections<'a> {
    /// `.eh_frame_hdr`, up to the end of its segment.
    pub(crate) header: ByteSpan<'a>,
    /// `.eh_frame`, up to the end of its segment.
    pub(crate) frames: ByteSpan<'a>,
}

/// A common information entry (CIE): the data that the FDEs of a compilation unit share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommonEntry<'a> {
    pub(crate) code_align: u64,
    pub(crate) data_align: i64,
    /// The column of the return address.
    pub(crate) return_address: u64,
    /// The encoding of addresses in the FDEs.
    pub(crate) encoding: u8,
    /// Whether the FDEs have augmentation data (`z`).
    augmented: bool,
    /// Whether the FDEs describe the frame that the kernel makes for a signal handler (`S`). Then the caller's pc is an
    /// interrupted instruction, not an instruction after a call.
    pub(crate) signal: bool,
    pub(crate) instructions: ByteReader<'a>,
}

/// The entry of one function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionEntry<'a> {
    pub(crate) cie: CommonEntry<'a>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) instructions: ByteReader<'a>,
}

/// The address of `.eh_frame` in the header at the start of `header`.
pub(crate) fn frames_address(header: ByteSpan<'_>) -> Option<usize> {
    EhFrameHeader::parse(header).map(|parsed| parsed.frames)
}

impl<'a> EhFrameSections<'a> {
    /// The entry of the function that contains `pc`.
    pub(crate) fn find(&self, pc: usize) -> Option<FunctionEntry<'a>> {
        let header = EhFrameHeader::parse(self.header)?;
        match header.table {
            Some(table) => {
                let address = table.entry_before(self.header, pc)?;
                let mut reader = self.frames.reader_at(address)?;
                match self.entry(&mut reader)? {
                    EhFrameEntry::Function(fde) if fde.contains(pc) => Some(fde),
                    _ => None,
                }
            }
            None => self.scan(pc),
        }
    }

    fn scan(&self, pc: usize) -> Option<FunctionEntry<'a>> {
        let mut reader = self.frames.reader_at(self.frames.address)?;
        while !reader.is_at_end() {
            match self.entry(&mut reader)? {
                EhFrameEntry::Function(fde) if fde.contains(pc) => return Some(fde),
                EhFrameEntry::Terminator => return None,
                EhFrameEntry::Function(_) | EhFrameEntry::Other => {}
            }
        }
        None
    }

    /// Reads the entry at `reader` and leaves the reader after it.
    fn entry(&self, reader: &mut ByteReader<'a>) -> Option<EhFrameEntry<'a>> {
        let Some((id, id_address, mut body)) = entry_body(reader)? else {
            return Some(EhFrameEntry::Terminator);
        };
        if id == 0 {
            return Some(EhFrameEntry::Other);
        }
        let cie = self.cie(id_address.wrapping_sub(id as usize))?;
        let start = body.pointer(cie.encoding, self.header.address)?;
        // The range has the same format as the start, but it is an absolute number.
        let range = body.pointer(cie.encoding & 0x0f, 0)?;
        if cie.augmented {
            let len = body.uleb()?;
            body.split(usize::try_from(len).ok()?)?;
        }
        Some(EhFrameEntry::Function(FunctionEntry {
            cie,
            start,
            end: start.wrapping_add(range),
            instructions: body,
        }))
    }

    fn cie(&self, address: usize) -> Option<CommonEntry<'a>> {
        let mut reader = self.frames.reader_at(address)?;
        let (id, _, mut body) = entry_body(&mut reader)??;
        let version = body.u8()?;
        if id != 0 || !matches!(version, 1 | 3 | 4) {
            return None;
        }
        let augmentation = body.text()?;
        if version == 4 {
            // The sizes of addresses and of segment selectors.
            body.u16()?;
        }
        let mut cie = CommonEntry {
            code_align: body.uleb()?,
            data_align: body.sleb()?,
            return_address: if version == 1 { u64::from(body.u8()?) } else { body.uleb()? },
            encoding: encoding::ABSOLUTE,
            augmented: false,
            signal: false,
            instructions: body,
        };
        let Some((b'z', letters)) = augmentation.split_first() else {
            // Only systems that this crate does not support use augmentations without a length (`eh`).
            cie.instructions = body;
            return augmentation.is_empty().then_some(cie);
        };
        cie.augmented = true;
        let len = body.uleb()?;
        let mut data = body.split(usize::try_from(len).ok()?)?;
        for letter in letters {
            match letter {
                b'R' => cie.encoding = data.u8()?,
                b'P' => {
                    let encoding = data.u8()?;
                    data.pointer(encoding & 0x7f, 0)?;
                }
                b'L' => {
                    data.u8()?;
                }
                b'S' => cie.signal = true,
                // aarch64: the key that signed the return address, and memory tagging.
                b'B' | b'G' => {}
                // The length gives the end, so the remaining unknown letters can be skipped.
                _ => break,
            }
        }
        cie.instructions = body;
        Some(cie)
    }
}

impl FunctionEntry<'_> {
    pub(crate) fn contains(&self, pc: usize) -> bool {
        (self.start..self.end).contains(&pc)
    }
}

enum EhFrameEntry<'a> {
    Function(FunctionEntry<'a>),
    /// A common information entry (CIE).
    Other,
    Terminator,
}

/// The id of the entry at `reader`, the address of the id, and the bytes after it. If the inner value is `None`, the
/// entry is the section's terminator.
fn entry_body<'a>(reader: &mut ByteReader<'a>) -> Option<Option<(u64, usize, ByteReader<'a>)>> {
    let len = match reader.u32()? {
        0 => return Some(None),
        u32::MAX => reader.u64()?,
        len => u64::from(len),
    };
    let mut body = reader.split(usize::try_from(len).ok()?)?;
    let id_address = body.address();
    // In `.eh_frame` (unlike `.debug_frame`) the id has four bytes even in the long format.
    let id = body.u32()?;
    Some(Some((u64::from(id), id_address, body)))
}

struct EhFrameHeader {
    frames: usize,
    table: Option<FdeTable>,
}

/// The sorted table: pairs of a function's start and its FDE's address, both as 32-bit numbers relative to the
/// header. Linkers write no other format.
struct FdeTable {
    offset: usize,
    len: usize,
}

const TABLE_ENCODING: u8 = encoding::DATA_RELATIVE | encoding::S32;

impl EhFrameHeader {
    fn parse(span: ByteSpan<'_>) -> Option<EhFrameHeader> {
        let mut reader = span.reader_at(span.address)?;
        if reader.u8()? != 1 {
            return None;
        }
        let (frames_encoding, count_encoding, table_encoding) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let frames = reader.pointer(frames_encoding, span.address)?;
        if count_encoding == encoding::OMITTED || table_encoding != TABLE_ENCODING {
            return Some(EhFrameHeader { frames, table: None });
        }
        let len = reader.pointer(count_encoding, span.address)?;
        Some(EhFrameHeader { frames, table: Some(FdeTable { offset: reader.position(), len }) })
    }
}

impl FdeTable {
    /// The address of the FDE for the last function that starts at or before `pc`.
    fn entry_before(&self, header: ByteSpan<'_>, pc: usize) -> Option<usize> {
        let bytes = header.bytes.get(self.offset..)?;
        let (entries, _) = bytes.as_chunks::<8>();
        // Limits the length in the header to the bytes that are mapped.
        let entries = entries.get(..self.len.min(entries.len()))?;
        let field = |entry: &[u8; 8], at: usize| {
            let word = [entry[at], entry[at + 1], entry[at + 2], entry[at + 3]];
            header.address.wrapping_add(i32::from_ne_bytes(word) as usize)
        };
        let after = entries.partition_point(|entry| field(entry, 0) <= pc);
        let entry = entries.get(after.checked_sub(1)?)?;
        Some(field(entry, 4))
    }
}
