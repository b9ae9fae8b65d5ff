//! Limits the bytes of all files together: unpacked sections, and names.

use std::sync::atomic::{AtomicU64, Ordering};

use gimli::SectionId;
use object::{CompressionFormat, Object as _, ObjectSection as _};

/// An allowance of bytes that all threads share.
#[derive(Debug)]
pub(super) struct ByteAllowance {
    most: u64,
    left: AtomicU64,
}

impl ByteAllowance {
    pub(super) fn new(most: u64) -> Self {
        Self { most, left: AtomicU64::new(most) }
    }

    /// The maximum number of bytes.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Takes bytes from the allowance, if enough bytes are left. Returns whether it took the bytes.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let rest = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }
}

/// The sections that the look-up reads.
pub(super) const READ: &[SectionId] = &[
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The sections of split debug information that the look-up needs. The look-up does not read the sections of locations,
/// macros and units of types. But the index of a package lists these sections, and `gimli` finds units only if the
/// package has all sections of its index.
pub(super) const SPLIT: &[SectionId] = &[
    SectionId::DebugAbbrev,
    SectionId::DebugCuIndex,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTuIndex,
    SectionId::DebugTypes,
];

/// The unpacked size of the compressed sections among `sections`, as the file states it. `object` never unpacks more
/// bytes than the file states. `name` returns the name of a section in the file.
pub(super) fn unpacked_size(
    file: &object::File<'_>,
    sections: &[SectionId],
    name: fn(SectionId) -> Option<&'static str>,
) -> u64 {
    let sections = sections.iter().filter_map(|id| name(*id)).filter_map(|name| file.section_by_name(name));
    let sizes = sections.filter_map(|section| section.compressed_data().ok()).map(|data| match data.format {
        CompressionFormat::None => 0,
        _ => data.uncompressed_size,
    });
    sizes.fold(0, u64::saturating_add)
}
