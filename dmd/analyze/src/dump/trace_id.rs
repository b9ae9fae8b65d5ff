//! The id of a trace.

/// The index of a trace in its dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DumpTraceId(pub(crate) u32);

impl Default for DumpTraceId {
    fn default() -> Self {
        Self::NONE
    }
}

impl DumpTraceId {
    /// Marks a trace that DMD did not record.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn index(self) -> Option<usize> {
        (self != Self::NONE).then_some(self.0 as usize)
    }
}
