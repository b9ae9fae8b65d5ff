//! What a dump says, with compact ids in place of its keys.

use core::ops::Range;

use crate::frame::Frame;
use crate::frames::{FrameId, Frames};
use crate::measurements::Measurements;
use crate::mode::Mode;

/// Index of a trace in its dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TraceId(pub(crate) u32);

impl TraceId {
    /// No trace was recorded.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn index(self) -> Option<usize> {
        (self != Self::NONE).then_some(self.0 as usize)
    }
}

/// An entry of `blockList`: `num` blocks that are alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) req: u64,
    pub(crate) slop: u64,
    pub(crate) num: u64,
    pub(crate) alloc: TraceId,
    /// The second is only there if the first is.
    pub(crate) reps: [TraceId; 2],
    /// Who reported it, in [`Dump::reporters`]; only dumps of ours say so.
    pub(crate) reporters: [u32; 2],
    /// A stand-in for smaller blocks, of a size that they have together.
    pub(crate) sampled: bool,
}

impl Block {
    pub(crate) fn usable(&self) -> i128 {
        i128::from(self.req) + i128::from(self.slop)
    }
}

/// What scan mode knows of a block besides.
#[derive(Clone, Debug)]
pub(crate) struct Scanned {
    pub(crate) addr: u64,
    /// Its words, in [`Dump::words`].
    pub(crate) words: Range<usize>,
    /// Where the array `contents` lies in the text, if it is there.
    pub(crate) text: Option<Range<u64>>,
}

/// A program or library that was loaded when a dump was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Where it lies.
    pub path: String,
    /// Hexadecimal, lower case; empty if it has none.
    pub build_id: String,
}

/// A reporter's path, and its bytes: those it said, and those of the blocks it marked meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reporter {
    pub(crate) path: String,
    pub(crate) claimed: u64,
    pub(crate) marked: u64,
}

/// A DMD dump (JSON, version 5), of Firefox or of this crate.
///
/// Read one with [`read`](crate::read). All sums over it are exact.
#[derive(Debug)]
pub struct Dump {
    /// `$DMD`, if it was set.
    pub(crate) variable: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) blocks: Vec<Block>,
    /// In scan mode, one for each block.
    pub(crate) scanned: Vec<Scanned>,
    pub(crate) words: Vec<u64>,
    pub(crate) traces: Vec<Range<u32>>,
    /// The frames of all traces, innermost first.
    pub(crate) calls: Vec<FrameId>,
    pub(crate) frames: Frames,
    pub(crate) modules: Option<Vec<Module>>,
    /// Only dumps of ours have them.
    pub(crate) reporters: Vec<Reporter>,
    /// When it was written, in seconds since 1970.
    pub(crate) time: Option<u64>,
    pub(crate) measurements: Measurements,
}

impl Dump {
    /// A dump without anything in it.
    pub(crate) fn empty(mode: Mode) -> Self {
        Self {
            variable: None,
            mode,
            blocks: Vec::new(),
            scanned: Vec::new(),
            words: Vec::new(),
            traces: Vec::new(),
            calls: Vec::new(),
            frames: Frames::default(),
            modules: None,
            reporters: Vec::new(),
            time: None,
            measurements: Measurements::default(),
        }
    }

    /// What was recorded.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether it lists the modules that were loaded, with their build ids: dumps of this crate do,
    /// Firefox's do not.
    pub fn has_modules(&self) -> bool {
        self.modules.is_some()
    }

    /// The stacks of the dump, each with its frames, innermost first.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = impl ExactSizeIterator<Item = Frame<'_>>> {
        self.traces.iter().map(|range| {
            self.calls[range.start as usize..range.end as usize].iter().map(|frame| self.frames.get(*frame))
        })
    }

    pub(crate) fn trace(&self, trace: TraceId) -> &[FrameId] {
        match trace.index() {
            None => &[],
            Some(index) => {
                let range = &self.traces[index];
                &self.calls[range.start as usize..range.end as usize]
            }
        }
    }
}
