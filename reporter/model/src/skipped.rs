//! The parts that a walk could not measure. They are listed, so that no gap is silent.

use core::fmt;

/// The reason why a part was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// A thread held the lock of the part.
    Locked,
    /// The part was mutably borrowed.
    Borrowed,
    /// The type gives no access to its memory.
    Opaque,
    /// The code of the part panicked, and the walk of the part ended there.
    Panicked,
}

/// A part that was not measured. The walk counts the bytes of the other parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SkippedPart {
    /// The reason why the part was not measured.
    pub reason: SkipReason,
    /// The type of the part, as returned by [`core::any::type_name`].
    pub type_name: &'static str,
    /// The number of such parts in the walk.
    pub times: u64,
}

impl SkippedPart {
    /// A part of this type that was skipped once.
    pub fn new(reason: SkipReason, type_name: &'static str) -> Self {
        Self { reason, type_name, times: 1 }
    }
}

impl fmt::Display for SkippedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.reason {
            SkipReason::Locked => "locked",
            SkipReason::Borrowed => "mutably borrowed",
            SkipReason::Opaque => "its memory is not accessible",
            SkipReason::Panicked => "panicked while it was measured",
        };
        write!(f, "{}: {what}", self.type_name)?;
        if self.times > 1 {
            write!(f, " ({} times)", self.times)?;
        }
        Ok(())
    }
}
