//! The parts that a walk could not measure, so that no gap is silent.

use core::fmt;

/// Why a part was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// Another thread, or this one, held its lock.
    Locked,
    /// It was mutably borrowed.
    Borrowed,
    /// Its type gives no access to its memory.
    Opaque,
    /// Its own code panicked, and the walk ended there.
    Panicked,
}

/// A part that was not measured; the walk counts the bytes before and after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SkippedPart {
    /// Why.
    pub reason: SkipReason,
    /// The type of the part, as [`core::any::type_name`] gives it.
    pub type_name: &'static str,
    /// How many such parts the walk met.
    pub times: u64,
}

impl SkippedPart {
    /// One part of this type.
    pub fn new(reason: SkipReason, type_name: &'static str) -> Self {
        Self { reason, type_name, times: 1 }
    }
}

impl fmt::Display for SkippedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.reason {
            SkipReason::Locked => "locked",
            SkipReason::Borrowed => "mutably borrowed",
            SkipReason::Opaque => "cannot be looked into",
            SkipReason::Panicked => "panicked while it was measured",
        };
        write!(f, "{}: {what}", self.type_name)?;
        if self.times > 1 {
            write!(f, " ({} times)", self.times)?;
        }
        Ok(())
    }
}
