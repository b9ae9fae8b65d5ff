//! Constructed debug information, dumps and memory that no compiler or program produces.

use dmd_analyze::image::StoppedThread;
use dmd_analyze::{AnalyzeError, Dump, DumpReadOptions, read_from};
use typed_heap::{DebugInfo, MemorySource};

/// The abbreviations (DWARF 4, section 7.5): for a unit, and for each function of [`Types`]. The attributes are the
/// name as text, the size, the type, the offset and the count.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0, 0, //
    2, 0x13, 1, 0x03, 0x08, 0x0b, 0x0f, 0, 0, //
    3, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x0f, 0, 0, //
    4, 0x0f, 0, 0x03, 0x08, 0x49, 0x13, 0, 0, //
    5, 0x24, 0, 0x03, 0x08, 0x0b, 0x0f, 0, 0, //
    6, 0x01, 1, 0x49, 0x13, 0, 0, //
    7, 0x21, 0, 0x37, 0x0f, 0, 0, //
    0,
];

const UNIT_HEADER: usize = 11;

/// Builds the types of a program. Each function returns a reference to the type.
pub(crate) struct Types(Vec<u8>);

impl Types {
    pub(crate) fn new() -> Self {
        // The length is filled in last.
        let mut unit = vec![0; UNIT_HEADER];
        (unit[4], unit[10]) = (4, 8);
        unit.push(1);
        Self(unit)
    }

    fn entry(&mut self, abbreviation: u8, name: &str) -> u32 {
        let at = self.0.len() as u32;
        self.0.push(abbreviation);
        self.0.extend(name.bytes().chain([0]));
        at
    }

    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(crate) fn scalar(&mut self, name: &str, size: u64) -> u32 {
        let at = self.entry(5, name);
        self.number(size);
        at
    }

    pub(crate) fn pointer(&mut self, name: &str, to: u32) -> u32 {
        let at = self.entry(4, name);
        self.0.extend(to.to_le_bytes());
        at
    }

    /// A pointer to the type that is added next.
    pub(crate) fn pointer_to_next(&mut self, name: &str) -> u32 {
        let at = self.entry(4, name);
        let next = self.0.len() as u32 + 4;
        self.0.extend(next.to_le_bytes());
        at
    }

    pub(crate) fn array(&mut self, of: u32, count: u64) -> u32 {
        let at = self.0.len() as u32;
        self.0.push(6);
        self.0.extend(of.to_le_bytes());
        self.0.push(7);
        self.number(count);
        self.0.push(0);
        at
    }

    /// A struct with these members: their names, types and offsets.
    pub(crate) fn structure<'a>(
        &mut self,
        name: &str,
        size: u64,
        members: impl IntoIterator<Item = (&'a str, u32, u64)>,
    ) -> u32 {
        let at = self.entry(2, name);
        self.number(size);
        for (name, of, offset) in members {
            self.entry(3, name);
            self.0.extend(of.to_le_bytes());
            self.number(offset);
        }
        self.0.push(0);
        at
    }

    /// The debug information of a program with these types.
    pub(crate) fn read(self) -> DebugInfo {
        DebugInfo::read(&self.program(0)).unwrap()
    }

    /// The file of a program with these types, and with additional units of one null entry each.
    pub(crate) fn program(mut self, empty_units: usize) -> Vec<u8> {
        self.0.push(0);
        let length = self.0.len() as u32 - 4;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0.extend([8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 0].repeat(empty_units));
        let names = b"\0.debug_abbrev\0.debug_info\0.shstrtab\0";
        let sections = [(1_u32, 1_u32, ABBREVIATIONS), (15, 1, &self.0), (27, 3, &names[..])];
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        let mut headers = vec![0; 64];
        for (name, kind, contents) in sections {
            headers.extend([name, kind].iter().flat_map(|word| word.to_le_bytes()));
            let words = [0, 0, file.len() as u64, contents.len() as u64, 0, 1, 0];
            headers.extend(words.iter().flat_map(|word: &u64| word.to_le_bytes()));
            file.extend(contents);
        }
        (file[16], file[18], file[20], file[52], file[58], file[60], file[62]) = (3, 62, 1, 64, 64, 4, 3);
        let at = file.len() as u64;
        file[40..48].copy_from_slice(&at.to_le_bytes());
        file.extend(headers);
        file
    }
}

/// A dump of scan mode, with a block for each address, type and contents. A block without a type has no stack.
pub(crate) fn dump(blocks: &[(u64, &str, Vec<u64>)]) -> Result<Dump, AnalyzeError> {
    let (mut list, mut traces, mut frames) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (address, of, words)) in blocks.iter().enumerate() {
        let contents: Vec<_> = words.iter().map(|word| format!("\"{word:x}\"")).collect();
        let stack = if of.is_empty() { String::new() } else { format!(", \"alloc\": \"T{number}\"") };
        let size = 8 * words.len();
        list.push(format!(
            "{{\"req\": {size}, \"addr\": \"{address:x}\", \"contents\": [{}]{stack}}}",
            contents.join(", ")
        ));
        traces.push(format!("\"T{number}\": [\"F{number}\"]"));
        frames.push(format!("\"F{number}\": \"#00: <alloc::boxed::Box<{of}>>::new (a.rs:1)\""));
    }
    let text = format!(
        "{{\"version\": 5, \"invocation\": {{\"dmdEnvVar\": null, \"mode\": \"scan\"}}, \"blockList\": [{}],
         \"traceTable\": {{{}}}, \"frameTable\": {{{}}}}}",
        list.join(", "),
        traces.join(", "),
        frames.join(", ")
    );
    read_from(text.as_bytes(), &DumpReadOptions::new().contents(true))
}

/// Memory that contains only zeros from `start` on. All threads have the same stack in the memory. `read` counts the
/// bytes that are read.
#[derive(Debug)]
pub(crate) struct OneStack {
    pub(crate) start: u64,
    pub(crate) threads: usize,
    pub(crate) read: core::cell::Cell<u64>,
}

impl MemorySource for OneStack {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        if address < self.start {
            return 0;
        }
        into.fill(0);
        self.read.set(self.read.get() + into.len() as u64);
        into.len()
    }

    fn threads(&self) -> Vec<StoppedThread> {
        let thread = |number| StoppedThread {
            number: Some(number as u64),
            stack_pointer: Some(self.start),
            ..StoppedThread::default()
        };
        (0..self.threads).map(thread).collect()
    }

    fn end_of(&self, address: u64) -> Option<u64> {
        address.checked_add(1 << 40)
    }
}
