//! What DMD records.

use core::fmt;

/// What DMD records and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// All live blocks.
    Live,
    /// All live blocks, and who reported them. The default.
    DarkMatter,
    /// All live blocks, and how many blocks of each kind were freed.
    Cumulative,
    /// All live blocks one by one, with their addresses and contents.
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

    /// The mode with this name.
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
