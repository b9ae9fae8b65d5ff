//! The search for references to a set of functions.

use crate::elf::{Machine, Symbol};
use crate::encodings::{aarch64, x86_64};

/// The form of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceForm {
    /// An aligned word that holds the function's address. It can be replaced while other threads run.
    Word,
    /// A reference in code, in this form.
    Code(CodeReference),
}

/// The form of a reference in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeReference {
    /// x86-64: the 4 bytes with the distance from their end to the function.
    Distance,
    /// x86-64: the 4 bytes of an absolute address.
    Immediate,
    /// aarch64: a branch.
    Branch,
    /// aarch64: `adrp` at the reference's address, and `add` this number of bytes after it.
    PagePair(u8),
}

/// A reference to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The address of the bytes that change.
    pub at: u64,
    /// The index of the function among the targets.
    pub function: u16,
    /// The form.
    pub form: ReferenceForm,
}

/// A segment with code.
#[derive(Clone, Copy, Debug)]
pub struct CodeSegment<'b> {
    /// The address of the first byte.
    pub address: u64,
    /// The code.
    pub bytes: &'b [u8],
}

/// The code of a function. `None` if it is not in one of these segments.
pub(crate) fn function_code<'b>(code: &[CodeSegment<'b>], function: &Symbol<'_>) -> Option<&'b [u8]> {
    code.iter().find_map(|segment| {
        let start = usize::try_from(function.address.checked_sub(segment.address)?).ok()?;
        segment.bytes.get(start..start.checked_add(usize::try_from(function.bytes).ok()?)?)
    })
}

/// A file as the loader loads it.
pub trait LoadedImage {
    /// The processor.
    fn machine(&self) -> Machine;

    /// Whether the loader may place the file at any address. Code then contains no absolute addresses.
    fn is_relocatable(&self) -> bool;

    /// The segments with code.
    fn code(&self) -> Vec<CodeSegment<'_>>;

    /// Whether an address is in a loaded segment.
    fn contains(&self, address: u64) -> bool;

    /// Calls `each` with the address and value of aligned words: at least of those that hold addresses of the file. The
    /// value is the address that the word refers to in the file.
    fn for_each_word(&self, each: &mut dyn FnMut(u64, u64));
}

/// A reference in code that the search has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeMatch {
    pub(crate) reference: Reference,
    /// If decoding must confirm the match, the position in the code at which an instruction must end; otherwise `None`.
    pub(crate) decoded_end: Option<u64>,
    /// Whether the code refers to the function in a form that cannot be redirected.
    pub(crate) is_odd: bool,
}

/// The functions to which references are searched.
pub(crate) struct Targets<'t> {
    /// The addresses of the functions.
    addresses: &'t [u64],
    least: u64,
    span: u64,
}

impl<'t> Targets<'t> {
    pub(crate) fn new(addresses: &'t [u64]) -> Self {
        let least = addresses.iter().min().copied().unwrap_or(u64::MAX);
        let greatest = addresses.iter().max().copied().unwrap_or_default();
        Self { addresses, least, span: greatest.saturating_sub(least) }
    }

    /// The index of the function at an address.
    #[inline]
    fn at(&self, address: u64) -> Option<u16> {
        if address.wrapping_sub(self.least) > self.span {
            return None;
        }
        self.addresses.iter().position(|target| *target == address).map(|index| index as u16)
    }

    /// The addresses in x86-64 code at which 4 bytes have the value of the distance to a target, with the index of the
    /// target. The search ignores the instructions, so some of these bytes are not distances.
    pub(crate) fn distances(&self, segment: &CodeSegment<'_>) -> impl Iterator<Item = (u64, u16)> {
        let places = segment.bytes.windows(4).enumerate();
        places.filter_map(move |(at, bytes)| {
            let at = segment.address.wrapping_add(at as u64);
            self.at(x86_64::target([bytes[0], bytes[1], bytes[2], bytes[3]], at)).map(|target| (at, target))
        })
    }

    pub(crate) fn words(&self, image: &dyn LoadedImage) -> Vec<Reference> {
        let mut found = Vec::new();
        image.for_each_word(&mut |at, value| {
            if let Some(function) = self.at(value) {
                found.push(Reference { at, function, form: ReferenceForm::Word });
            }
        });
        found
    }

    /// The references in code, by address.
    pub(crate) fn code(&self, image: &dyn LoadedImage) -> Vec<CodeMatch> {
        let mut found = Vec::new();
        for segment in image.code() {
            match image.machine() {
                Machine::X86_64 => self.x86_64(&segment, !image.is_relocatable(), &mut found),
                Machine::Aarch64 => self.aarch64(&segment, &mut found),
            }
        }
        found.sort_by_key(|found| found.reference.at);
        found
    }

    fn x86_64(&self, segment: &CodeSegment<'_>, absolute: bool, found: &mut Vec<CodeMatch>) {
        let code = segment.bytes;
        for (at, window) in code.windows(4).enumerate().skip(1) {
            let bytes = [window[0], window[1], window[2], window[3]];
            let address = segment.address.wrapping_add(at as u64);
            let mut add = |function, form, decoded_end| {
                let reference = Reference { at: address, function, form: ReferenceForm::Code(form) };
                found.push(CodeMatch { reference, decoded_end, is_odd: false });
            };
            if let Some(function) = self.at(x86_64::target(bytes, address)) {
                match x86_64::distance_form(code, at) {
                    Some(x86_64::Certainty::Certain) => add(function, CodeReference::Distance, None),
                    Some(x86_64::Certainty::NeedsDecoding) => {
                        add(function, CodeReference::Distance, Some(address.wrapping_add(4)));
                    }
                    None => {}
                }
            } else if absolute && let Some(function) = self.at(u64::from(u32::from_le_bytes(bytes))) {
                add(function, CodeReference::Immediate, Some(address.wrapping_add(4)));
            }
        }
    }

    fn aarch64(&self, segment: &CodeSegment<'_>, found: &mut Vec<CodeMatch>) {
        let words = |from: usize| {
            let code = segment.bytes.get(from..).unwrap_or_default();
            code.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        };
        for (index, instruction) in words(0).enumerate() {
            let at = segment.address.wrapping_add(index as u64 * 4);
            let mut add = |function, form, is_odd| {
                let reference = Reference { at, function, form: ReferenceForm::Code(form) };
                found.push(CodeMatch { reference, decoded_end: None, is_odd });
            };
            if let Some(target) = aarch64::branch_target(instruction, at) {
                if let Some(function) = self.at(target) {
                    add(function, CodeReference::Branch, false);
                }
                continue;
            }
            if let Some(function) = aarch64::near_target(instruction, at).and_then(|target| self.at(target)) {
                add(function, CodeReference::PagePair(0), true);
            }
            let Some((page, register)) = aarch64::page_target(instruction, at) else { continue };
            if page.wrapping_sub(self.least & !0xfff) > self.span.saturating_add(0xfff) {
                continue;
            }
            // The compiler may put other instructions between `adrp` and `add`.
            let (mut is_overwritten, mut may_jump) = (false, false);
            for (distance, next) in words(index * 4 + 4).take(FARTHEST).enumerate() {
                if is_overwritten && !may_jump {
                    break;
                }
                may_jump |= aarch64::is_jump(next);
                if is_overwritten || distance >= MOST_BETWEEN {
                    // A jump may lead around the instruction that overwrites the register. So a later `add` may belong
                    // to this `adrp`.
                    let added = aarch64::added_bytes(next).filter(|(_, from)| *from == register);
                    let function = added.and_then(|(bytes, _)| self.at(page.wrapping_add(bytes)));
                    if let Some(function) = function {
                        add(function, CodeReference::PagePair(0), true);
                    }
                    continue;
                }
                if let Some((bytes, from)) = aarch64::added_bytes(next)
                    && from == register
                {
                    if let Some(function) = self.at(page.wrapping_add(bytes)) {
                        // Another `add` may use the same page, unless this `add` directly follows `adrp` and overwrites
                        // the register.
                        let is_alone = distance == 0 && next & 31 == register;
                        add(function, CodeReference::PagePair((distance as u8 + 1) * 4), !is_alone);
                    }
                    is_overwritten = next & 31 == register;
                    continue;
                }
                is_overwritten = aarch64::written_register(next) == Some(register);
            }
        }
    }
}

/// The largest number of instructions from `adrp` to its `add`.
const MOST_BETWEEN: usize = 16;

/// An `add` in this number of instructions after `adrp` may belong to it.
const FARTHEST: usize = 1024;
