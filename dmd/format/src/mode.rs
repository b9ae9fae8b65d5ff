//! The modes of DMD.

use core::fmt;

/// Selects which blocks and data DMD records and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Writes all live blocks.
    Live,
    /// Writes all live blocks and their reports. The default.
    DarkMatter,
    /// Writes all live blocks, and the number of freed blocks of each kind.
    Cumulative,
    /// Writes each live block with its address and contents.
    Scan,
}

impl Mode {
    /// The name in `$DMD` and in dumps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::DarkMatter => "dark-matter",
            Self::Cumulative => "cumulative",
            Self::Scan => "scan",
        }
    }

    /// The mode with this name; `None` if there is no such mode.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Live, Self::DarkMatter, Self::Cumulative, Self::Scan]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
