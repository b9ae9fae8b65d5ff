//! A reported pointer that is not that of a live block, as a dump has it.

use super::trace_id::DumpTraceId;

/// The fault of a reported pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReportFaultKind {
    /// It is in no block: on the stack, static, mapped, or of another allocator.
    NotHeap,
    /// It is inside a block, but not at its start.
    Interior,
    /// The block was freed before the report.
    Freed,
}

impl ReportFaultKind {
    pub(crate) const ALL: [Self; 3] = [Self::NotHeap, Self::Interior, Self::Freed];

    /// The name that a dump has, such as `not-heap`.
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

    /// The words for it, behind the word pointer.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::NotHeap => "not in a heap block",
            Self::Interior => "inside a block, not at its start",
            Self::Freed => "to a block that was freed",
        }
    }
}

/// One fault, as a dump has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultyPointer {
    pub(crate) kind: ReportFaultKind,
    pub(crate) address: u64,
    /// The index in `Dump::reporters`.
    pub(crate) reporter: u32,
    pub(crate) trace: DumpTraceId,
}
