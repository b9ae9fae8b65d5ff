//! Allocation stacks: each frame refers to its caller, and equal frames are stored once.

use core::hash::BuildHasher as _;
use core::num::NonZeroU32;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::text::GraphTextId;

/// The number of a frame in a graph. Equal frames with equal parents have equal ids. Two frames that differ only in
/// `is_self_hosted` also have equal ids, since every report shows them as one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphFrameId(NonZeroU32);

impl GraphFrameId {
    /// The stack of a node whose recorded stack has no frames. A census counts the node under `null`, not under
    /// `noStack`. This id is not a frame, and no frame has it as its parent. Snapshots in files do not contain it.
    pub const EMPTY_STACK: Self = Self(NonZeroU32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// One frame of an allocation stack. Its caller and its texts are ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "a builder's user fills it in, field by field")]
pub struct FrameParts {
    /// The caller; `None` for the outermost frame.
    pub parent: Option<GraphFrameId>,
    /// The source file, or an address.
    pub source: GraphTextId,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// The name of the function; `None` if it has no name.
    pub function: Option<GraphTextId>,
    /// Whether the frame belongs to the system, not to the program.
    pub is_system: bool,
    /// Whether the frame belongs to the language's own library.
    pub is_self_hosted: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FrameTable {
    all: Vec<FrameParts>,
    ids: HashTable<GraphFrameId>,
    hasher: DefaultHashBuilder,
}

impl FrameTable {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The memory of the frames in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.all.capacity() * size_of::<FrameParts>() + self.ids.capacity() * (size_of::<GraphFrameId>() + 1)
    }

    pub(crate) fn get(&self, id: GraphFrameId) -> &FrameParts {
        &self.all[id.index()]
    }

    /// Adds a frame, or finds an equal frame that was added before. `None` if there are already 2^32 - 2 frames.
    pub(crate) fn intern(&mut self, mut frame: FrameParts) -> Option<GraphFrameId> {
        frame.parent = frame.parent.filter(|parent| *parent != GraphFrameId::EMPTY_STACK);
        let Self { all, ids, hasher } = self;
        let key = |frame: FrameParts| FrameParts { is_self_hosted: false, ..frame };
        let hash = hasher.hash_one(key(frame));
        if let Some(id) = ids.find(hash, |id| key(all[id.index()]) == key(frame)) {
            return Some(*id);
        }
        let id = GraphFrameId(NonZeroU32::new(u32::try_from(all.len() + 1).ok()?)?);
        if id == GraphFrameId::EMPTY_STACK {
            return None;
        }
        all.push(frame);
        ids.insert_unique(hash, id, |id| hasher.hash_one(key(all[id.index()])));
        Some(id)
    }
}
