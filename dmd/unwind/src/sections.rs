//! Reads unwind sections from bytes, in the same way as the walker. Tests compare the results with the results of
//! another reader, and pass damaged bytes.

use crate::eh_frame;
use crate::general::GeneralFrame;
use crate::module::UnwindModule;
use crate::reader::ByteSpan;
use crate::row::{Cfa, SavedRegister, row_at};
use crate::rule::UnwindRule;
use crate::stack::{StackMemory, StackRange};
use core::fmt::Write as _;

/// Start, end and `.eh_frame_hdr` of the module that contains `pc`, found in two ways: this system's way, and
/// `dl_iterate_phdr`, which the walker uses with C libraries without `_dl_find_object`.
pub fn module_both_ways(pc: usize) -> [Option<[usize; 3]>; 2] {
    [UnwindModule::find(pc), UnwindModule::find_with_lock(pc)]
        .map(|module| module.map(|module| [module.start, module.end, module.header]))
}

/// The unwind sections of a module, with the addresses that the caller gives for them.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a> {
    /// The address of `.eh_frame_hdr`.
    pub header_address: usize,
    /// `.eh_frame_hdr`.
    pub header: &'a [u8],
    /// The address of `.eh_frame`.
    pub frames_address: usize,
    /// `.eh_frame`.
    pub frames: &'a [u8],
}

impl Sections<'_> {
    fn parsed(&self) -> eh_frame::EhFrameSections<'_> {
        eh_frame::EhFrameSections {
            header: ByteSpan { address: self.header_address, bytes: self.header },
            frames: ByteSpan { address: self.frames_address, bytes: self.frames },
        }
    }

    /// The address of `.eh_frame`, read from `.eh_frame_hdr`.
    pub fn frames_address(&self) -> Option<usize> {
        eh_frame::frames_address(self.parsed().header)
    }

    /// The row at `pc` as text: `cfa=7+16 6=[cfa-16] 16=[cfa-8]`. Registers have DWARF's numbers; registers without
    /// a rule are left out.
    pub fn row(&self, pc: usize) -> Option<String> {
        let sections = self.parsed();
        let fde = sections.find(pc)?;
        let row = row_at(&fde, pc)?;
        let mut text = match row.cfa {
            Cfa::Register { register, offset } => format!("cfa={register}{offset:+}"),
            Cfa::Expression(_) => String::from("cfa=expression"),
        };
        for (register, saved) in row.saved.iter().enumerate() {
            let written = match saved {
                SavedRegister::Unspecified => Ok(()),
                SavedRegister::Undefined => write!(text, " {register}=undefined"),
                SavedRegister::Kept => write!(text, " {register}=kept"),
                SavedRegister::At(offset) => write!(text, " {register}=[cfa{offset:+}]"),
                SavedRegister::Value(offset) => write!(text, " {register}=cfa{offset:+}"),
                SavedRegister::Register(source) => write!(text, " {register}={source}"),
                SavedRegister::AtExpression(_) => write!(text, " {register}=[expression]"),
                SavedRegister::ValueExpression(_) => write!(text, " {register}=expression"),
            };
            written.ok()?;
        }
        if fde.cie.signal {
            text.push_str(" signal");
        }
        Some(text)
    }

    /// The rule at `pc` as text, after it was packed and unpacked.
    pub fn rule(&self, pc: usize) -> String {
        format!("{:?}", UnwindRule::from_word(UnwindRule::compile(&self.parsed(), pc).to_word()))
    }

    /// The return address of a frame at `pc` with the stack `stack`, found by the general step.
    pub fn caller(&self, pc: usize, stack: &[usize]) -> Option<usize> {
        let words = stack.as_ptr_range();
        let (low, high) = (words.start.expose_provenance(), words.end.expose_provenance());
        let mut range = StackRange::over(low, high);
        let mut memory = StackMemory::new(&mut range, low);
        let mut known = GeneralFrame::partial(pc.wrapping_add(1), low, low + (high - low) / 2);
        known.step(&self.parsed(), &mut memory).ok()?;
        Some(known.pc)
    }
}
