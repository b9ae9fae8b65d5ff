//! The modes of DMD.

use core::fmt;

/// The mode in which DMD recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Live blocks.
    Live,
    /// Live blocks with their reports.
    DarkMatter,
    /// All blocks ever allocated.
    Cumulative,
    /// Live blocks with their addresses and contents.
    Scan,
}

impl Mode {
    /// The name in a dump.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::DarkMatter => "dark-matter",
            Self::Cumulative => "cumulative",
            Self::Scan => "scan",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
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
