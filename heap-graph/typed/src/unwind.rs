//! Finds the frames of a thread, from its registers, its stack, and the unwind tables of its program and libraries
//! (DWARF 5, section 6.4; Linux Standard Base, `.eh_frame_hdr`).

use std::cell::OnceCell;
use std::fs::{self, File};

use dmd_analyze::LoadedModule;
use dmd_analyze::image::StoppedThread;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, ParsedEhFrameHdr, Register,
    RegisterRule, UnwindContext, UnwindSection as _,
};
use object::read::ReadCache;
use object::{Architecture, Object as _, ObjectSection as _, ObjectSegment as _};

/// The largest number of frames of a stack.
const MOST: usize = 1 << 14;

/// The number of DWARF registers: the largest number among the supported processors.
const REGISTERS: usize = 96;

/// A frame of a thread, or a group of frames of unknown functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackFrame {
    /// An address in the frame's function. For the innermost frame, it is the next instruction. For a caller, it is
    /// the address before the return address. `None` if unknown.
    pub(crate) code: Option<u64>,
    /// The address after the frame.
    pub(crate) end: u64,
}

/// The unwind tables of a file, and the register numbers of its processor.
#[derive(Debug)]
struct UnwindTables {
    frames: Vec<u8>,
    header: Option<Vec<u8>>,
    bases: BaseAddresses,
    /// The registers with the stack pointer and with the return address.
    registers: (Register, Register),
}

#[derive(Debug)]
struct UnwindModule<'d> {
    module: &'d LoadedModule,
    bias: u64,
    /// The code ranges of the module in memory: start and size.
    code: Vec<(u64, u64)>,
    tables: OnceCell<Option<UnwindTables>>,
}

/// Unwinds stacks with the modules of a dump.
#[derive(Debug)]
pub(crate) struct Unwinder<'d> {
    modules: Vec<UnwindModule<'d>>,
}

impl<'d> Unwinder<'d> {
    pub(crate) fn new(modules: &'d [LoadedModule]) -> Self {
        Self { modules: modules.iter().filter_map(loaded).collect() }
    }

    /// The module with code at an address, and the address in the module's file.
    pub(crate) fn module(&self, code: u64) -> Option<(&'d LoadedModule, u64)> {
        self.at(code).map(|loaded| (loaded.module, code.wrapping_sub(loaded.bias)))
    }

    fn at(&self, code: u64) -> Option<&UnwindModule<'d>> {
        let has = |loaded: &&UnwindModule<'_>| {
            loaded.code.iter().any(|(start, bytes)| code.wrapping_sub(*start) < *bytes)
        };
        self.modules.iter().find(has)
    }

    /// The frames, from the innermost: first the frames that the unwind tables describe, then the frames that are known
    /// without tables. `read` returns the word at an address.
    pub(crate) fn frames(
        &self,
        thread: &StoppedThread,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Vec<StackFrame> {
        let mut frames = self.by_tables(thread, read);
        // A frame ends at its caller's stack pointer after the call.
        for pair in thread.frames.windows(2).rev() {
            let [(_, end), (code, stack)] = *pair else { continue };
            let last = frames.last().map_or(0, |frame| frame.end);
            if stack < last {
                continue;
            }
            if stack > last {
                frames.push(StackFrame { code: None, end: stack });
            }
            frames.push(StackFrame { code: code.checked_sub(1), end });
        }
        frames
    }

    fn by_tables(&self, thread: &StoppedThread, read: &dyn Fn(u64) -> Option<u64>) -> Vec<StackFrame> {
        let mut frames = Vec::new();
        let (Some(mut stack), Some(mut code)) = (thread.stack_pointer, thread.code) else { return frames };
        let mut registers = [None; REGISTERS];
        for (number, value) in &thread.registers {
            if let Some(register) = registers.get_mut(usize::from(*number)) {
                *register = Some(*value);
            }
        }
        let mut context = UnwindContext::new();
        while frames.len() < MOST {
            let Some(step) = self.step(code, stack, &mut registers, &mut context, read) else { break };
            if step.0 <= stack && !frames.is_empty() {
                break;
            }
            frames.push(StackFrame { code: Some(code), end: step.0 });
            stack = step.0;
            // Uses the address before the return address: a call may be the last instruction of a function.
            let Some(caller) = step.1.checked_sub(1) else { break };
            code = caller;
        }
        frames
    }

    /// The end of the frame of a function that runs at `code`, and the frame's return address.
    fn step(
        &self,
        code: u64,
        stack: u64,
        registers: &mut [Option<u64>; REGISTERS],
        context: &mut UnwindContext<usize>,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Option<(u64, u64)> {
        let loaded = self.at(code)?;
        let tables = loaded.tables.get_or_init(|| tables(&loaded.module.path)).as_ref()?;
        let address = code.wrapping_sub(loaded.bias);
        let frames = EhFrame::new(&tables.frames, LittleEndian);
        let (stack_register, return_register) = tables.registers;
        registers[usize::from(stack_register.0)] = Some(stack);
        let header = tables.header();
        let fde = header.as_ref().and_then(|header| {
            let table = header.table()?;
            table.fde_for_address(&frames, &tables.bases, address, EhFrame::cie_from_offset).ok()
        });
        let fde =
            fde.or_else(|| frames.fde_for_address(&tables.bases, address, EhFrame::cie_from_offset).ok())?;
        let row = fde.unwind_info_for_address(&frames, &tables.bases, context, address).ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let base = *registers.get(usize::from(register.0))?;
        let end = base?.wrapping_add_signed(*offset);
        let before = *registers;
        for (register, rule) in row.registers() {
            let Some(place) = registers.get_mut(usize::from(register.0)) else { continue };
            *place = match rule {
                RegisterRule::Offset(offset) => read(end.wrapping_add_signed(*offset)),
                RegisterRule::ValOffset(offset) => Some(end.wrapping_add_signed(*offset)),
                RegisterRule::Register(other) => before.get(usize::from(other.0)).copied().flatten(),
                RegisterRule::SameValue => *place,
                _ => None,
            };
        }
        // Without a rule, the register has kept its value, as in a leaf function on aarch64.
        let caller = registers[usize::from(return_register.0)].take()?;
        Some((end, caller))
    }
}

impl UnwindTables {
    fn header(&self) -> Option<ParsedEhFrameHdr<EndianSlice<'_, LittleEndian>>> {
        EhFrameHdr::new(self.header.as_ref()?, LittleEndian).parse(&self.bases, 8).ok()
    }
}

fn loaded(module: &LoadedModule) -> Option<UnwindModule<'_>> {
    let bias = module.bias?;
    let cache = opened(&module.path)?;
    let file = object::File::parse(&cache).ok()?;
    let code =
        file.segments().map(|segment| (segment.address().wrapping_add(bias), segment.size())).collect();
    Some(UnwindModule { module, bias, code, tables: OnceCell::new() })
}

fn opened(path: &str) -> Option<ReadCache<File>> {
    // Opening a pipe would wait, so other files are rejected first.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(ReadCache::new(File::open(path).ok()?))
}

fn tables(path: &str) -> Option<UnwindTables> {
    let cache = opened(path)?;
    let file = object::File::parse(&cache).ok()?;
    let registers = match file.architecture() {
        Architecture::X86_64 => (gimli::X86_64::RSP, gimli::X86_64::RA),
        Architecture::Aarch64 => (gimli::AArch64::SP, gimli::AArch64::X30),
        _ => return None,
    };
    let section = |name| file.section_by_name(name);
    let frames = section(".eh_frame")?;
    let header = section(".eh_frame_hdr");
    let mut bases = BaseAddresses::default().set_eh_frame(frames.address());
    if let Some(header) = &header {
        bases = bases.set_eh_frame_hdr(header.address());
    }
    if let Some(text) = section(".text") {
        bases = bases.set_text(text.address());
    }
    let contents = |section: object::Section<'_, '_, _>| section.data().ok().map(<[u8]>::to_vec);
    Some(UnwindTables { frames: contents(frames)?, header: header.and_then(contents), bases, registers })
}
