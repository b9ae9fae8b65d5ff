//! The formats of stacks.

use std::io::Write;

use memory_export::{ExportError, Stacks, dhat, firefox_profiler, folded, heaptrack, pprof, speedscope};

/// A format of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serve", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum StacksFormat {
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

impl StacksFormat {
    /// Whether a file of a recording has more than the blocks that are alive at one time: those that ended before, or the
    /// bytes over time.
    pub fn has_history(self) -> bool {
        match self {
            Self::Pprof | Self::Dhat | Self::Heaptrack | Self::FirefoxProfiler => true,
            Self::Speedscope | Self::Folded => false,
        }
    }

    /// The end of a file's name that tells the format, without a dot at the start.
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
}

/// Writes stacks. Returns the number of blocks that are missing from the format's counts, since several became one.
///
/// # Errors
///
/// If `out` fails, or if the format cannot say an amount.
pub fn write(
    stacks: &Stacks,
    format: StacksFormat,
    options: &pprof::Options,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    match format {
        StacksFormat::Pprof => pprof::write(stacks, options, out)?,
        StacksFormat::Dhat => dhat::write(stacks, out)?,
        StacksFormat::Speedscope => speedscope::write(stacks, &speedscope::Options::new(), out)?,
        StacksFormat::Heaptrack => {
            return Ok(heaptrack::write(stacks, &heaptrack::Options::new(), out)?.merged);
        }
        StacksFormat::FirefoxProfiler => firefox_profiler::write(stacks, [], out)?,
        StacksFormat::Folded => folded::write(stacks, out)?,
    }
    Ok(0)
}
