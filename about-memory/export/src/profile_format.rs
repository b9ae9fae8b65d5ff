//! The formats for stacks.

use std::io::Write;

use crate::{ExportError, StackProfile, dhat, firefox_profiler, folded, heaptrack, pprof, speedscope};

/// A format for stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProfileFormat {
    /// pprof.
    Pprof,
    /// DHAT's JSON.
    Dhat,
    /// speedscope's JSON.
    Speedscope,
    /// heaptrack's text.
    Heaptrack,
    /// The Firefox Profiler's JSON.
    FirefoxProfiler,
    /// Folded stacks.
    Folded,
}

impl ProfileFormat {
    /// All formats.
    pub const ALL: [Self; 6] =
        [Self::Pprof, Self::Dhat, Self::Speedscope, Self::Heaptrack, Self::FirefoxProfiler, Self::Folded];

    /// The name in commands and requests, for example `firefox-profiler`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pprof => "pprof",
            Self::Dhat => "dhat",
            Self::Speedscope => "speedscope",
            Self::Heaptrack => "heaptrack",
            Self::FirefoxProfiler => "firefox-profiler",
            Self::Folded => "folded",
        }
    }

    /// Whether a file made from a recording has more than the live blocks of one time: freed blocks, too, or the bytes
    /// over time.
    pub fn has_history(self) -> bool {
        match self {
            Self::Pprof | Self::Dhat | Self::Heaptrack | Self::FirefoxProfiler => true,
            Self::Speedscope | Self::Folded => false,
        }
    }

    /// The extension of the format's files, without a leading dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Pprof => "pb.gz",
            Self::Dhat => "dhat.json",
            Self::Speedscope => "speedscope.json",
            Self::Heaptrack => "heaptrack",
            Self::FirefoxProfiler => "profile.json",
            Self::Folded => "folded",
        }
    }

    /// Writes stacks. Returns the number of blocks that are missing from the format's counts because blocks were
    /// merged.
    ///
    /// # Errors
    ///
    /// If `out` fails, or if the format cannot hold an amount.
    pub fn write(
        self,
        stacks: &StackProfile,
        options: &pprof::PprofOptions,
        out: &mut dyn Write,
    ) -> Result<u64, ExportError> {
        match self {
            Self::Pprof => pprof::write(stacks, options, out)?,
            Self::Dhat => dhat::write(stacks, out)?,
            Self::Speedscope => speedscope::write(stacks, &speedscope::SpeedscopeOptions::new(), out)?,
            Self::Heaptrack => {
                return Ok(heaptrack::write(stacks, &heaptrack::HeaptrackOptions::new(), out)?.merged);
            }
            Self::FirefoxProfiler => firefox_profiler::write(stacks, [], out)?,
            Self::Folded => folded::write(stacks, out)?,
        }
        Ok(0)
    }
}
