//! What a dump says, with compact ids in place of its keys.

use core::fmt;
use core::ops::Range;

use super::measurements::Measurements;
use super::texts::{FrameId, Texts};

/// What DMD recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Live blocks.
    Live,
    /// Live blocks, and who reported them.
    DarkMatter,
    /// All blocks ever allocated.
    Cumulative,
    /// Live blocks with their addresses and contents.
    Scan,
}

impl Mode {
    /// As written in a dump.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::DarkMatter => "dark-matter",
            Self::Cumulative => "cumulative",
            Self::Scan => "scan",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
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

/// Index of a trace in its dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TraceId(pub(super) u32);

impl TraceId {
    /// No trace was recorded.
    pub(super) const NONE: Self = Self(u32::MAX);

    pub(super) fn index(self) -> Option<usize> {
        (self != Self::NONE).then_some(self.0 as usize)
    }
}

/// An entry of `blockList`: `num` blocks that are alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) req: u64,
    pub(super) slop: u64,
    pub(super) num: u64,
    pub(super) alloc: TraceId,
    /// The second is only there if the first is.
    pub(super) reps: [TraceId; 2],
    /// Who reported it, in [`Dump::reporters`]; only dumps of ours say so.
    pub(super) reporters: [u32; 2],
    /// A stand-in for smaller blocks, of a size that they have together.
    pub(super) sampled: bool,
}

impl Block {
    pub(super) fn usable(&self) -> i128 {
        i128::from(self.req) + i128::from(self.slop)
    }
}

/// What scan mode knows of a block besides.
#[derive(Clone, Debug)]
pub(super) struct Scanned {
    pub(super) addr: u64,
    /// Its words, in [`Dump::words`].
    pub(super) words: Range<usize>,
    /// Where the array `contents` lies in the text, if it is there.
    pub(super) text: Option<Range<u64>>,
}

/// A file that was loaded when a dump was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) path: String,
    /// Hexadecimal, lower case; empty if it has none.
    pub(crate) build_id: String,
}

/// A reporter's path, and its bytes: those it said, and those of the blocks it marked meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reporter {
    pub(super) path: String,
    pub(super) claimed: u64,
    pub(super) marked: u64,
}

/// A DMD dump (JSON, version 5), of Firefox or of this crate.
///
/// Read one with [`read`](super::read). All sums over it are exact.
#[derive(Debug)]
pub struct Dump {
    /// `$DMD`, if it was set.
    pub(super) variable: Option<String>,
    pub(super) mode: Mode,
    pub(super) blocks: Vec<Block>,
    /// In scan mode, one for each block.
    pub(super) scanned: Vec<Scanned>,
    pub(super) words: Vec<u64>,
    pub(crate) traces: Vec<Range<u32>>,
    /// The frames of all traces, innermost first.
    pub(crate) frames: Vec<FrameId>,
    pub(crate) texts: Texts,
    pub(crate) modules: Option<Vec<Module>>,
    /// Only dumps of ours have them.
    pub(super) reporters: Vec<Reporter>,
    /// When it was written, in seconds since 1970.
    pub(crate) time: Option<u64>,
    pub(super) measurements: Measurements,
}

impl Dump {
    /// What was recorded.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether it lists the modules that were loaded, with their build ids: dumps of this crate do,
    /// Firefox's do not.
    pub fn has_modules(&self) -> bool {
        self.modules.is_some()
    }

    pub(super) fn trace(&self, trace: TraceId) -> &[FrameId] {
        match trace.index() {
            None => &[],
            Some(index) => {
                let range = &self.traces[index];
                &self.frames[range.start as usize..range.end as usize]
            }
        }
    }
}
