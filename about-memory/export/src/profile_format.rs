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

    /// A short description of the format, and the programs that read it.
    pub fn tools(self) -> &'static str {
        match self {
            Self::Pprof => "pprof: go tool pprof, Pyroscope, Parca, speedscope",
            Self::Dhat => "DHAT's JSON: `dh_view.html` of Valgrind",
            Self::Speedscope => "speedscope's JSON: speedscope",
            Self::Heaptrack => "heaptrack's text: `heaptrack_gui`, `heaptrack_print`",
            Self::FirefoxProfiler => "The Firefox Profiler's JSON: profiler.firefox.com, samply load",
            Self::Folded => "Folded stacks: inferno-flamegraph, speedscope, ui.perfetto.dev",
        }
    }

    /// Returns the format that the name of a file selects, without a final `.gz`. `None` for an unknown name.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        match () {
            () if ends(&[".pb", ".pprof"]) => Some(Self::Pprof),
            () if ends(&[".dhat.json", ".dhat"]) => Some(Self::Dhat),
            () if ends(&[".speedscope.json", ".speedscope"]) => Some(Self::Speedscope),
            () if ends(&[".heaptrack"]) => Some(Self::Heaptrack),
            () if ends(&[".profile.json", ".firefox.json"]) => Some(Self::FirefoxProfiler),
            () if ends(&[".folded", ".collapsed"]) => Some(Self::Folded),
            // heaptrack and DHAT name their own files like this.
            () if name.starts_with("heaptrack.") => Some(Self::Heaptrack),
            () if name.starts_with("dhat") && ends(&[".json"]) => Some(Self::Dhat),
            () => None,
        }
    }

    /// Whether a file made from a recording contains freed blocks, or the bytes over time, in addition to the live
    /// blocks of one time.
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
    /// Returns an error if `out` fails, or if the format cannot hold an amount.
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
