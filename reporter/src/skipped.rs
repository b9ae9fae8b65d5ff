//! What a walk could not look at, so that no gap is silent.

use core::fmt;

/// Why a part was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// Its lock was held by somebody.
    Locked,
    /// It was mutably borrowed.
    Borrowed,
    /// The type gives no way to see its memory.
    Opaque,
    /// Its own code panicked, and the walk ended there.
    Panicked,
}

/// A part that was not measured; the bytes before it in the walk are counted all the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// Why.
    pub reason: SkipReason,
    /// The type of the part, as [`core::any::type_name`] gives it.
    pub type_name: &'static str,
    /// How often such a part was met.
    pub times: u64,
}

impl fmt::Display for Skipped {
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
