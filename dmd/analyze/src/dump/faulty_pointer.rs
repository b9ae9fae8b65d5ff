//! Reported pointers that do not point to the start of a live block, as they are in the dump.

use super::trace_id::DumpTraceId;

/// The fault of a reported pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReportFaultKind {
    /// The pointer is in no block: it points to the stack, to static or mapped memory, or into a block of another
    /// allocator.
    NotHeap,
    /// The pointer is inside a block, but not at its start.
    Interior,
    /// The block was freed before the report.
    Freed,
}

impl ReportFaultKind {
    pub(crate) const ALL: [Self; 3] = [Self::NotHeap, Self::Interior, Self::Freed];

    /// The name in a dump, such as `not-heap`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotHeap => "not-heap",
            Self::Interior => "interior",
            Self::Freed => "freed",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The words that follow "pointer" in a text.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::NotHeap => "not in a heap block",
            Self::Interior => "inside a block, not at its start",
            Self::Freed => "to a block that was freed",
        }
    }
}

/// One fault, as it is in the dump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultyPointer {
    pub(crate) kind: ReportFaultKind,
    pub(crate) address: u64,
    /// The index in `Dump::reporters`.
    pub(crate) reporter: u32,
    pub(crate) trace: DumpTraceId,
}
