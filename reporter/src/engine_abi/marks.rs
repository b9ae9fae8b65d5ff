//! Marks the blocks that reports count.

use super::{
    ENCLOSING, EngineTable, FOREIGN, FREED, INTERIOR, NO_PATH, NOT_HEAP, ON_ALLOC, PROBE, PathNumber,
    RECORDED, engine, heap, is_itself,
};

/// Marks blocks for one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    engine: &'static EngineTable,
    pub(super) path: PathNumber,
    /// The flag [`RECORDED`] or [`FOREIGN`]: whether the engine records all blocks of the program's allocator.
    allocator: u32,
}

/// The engine's answer about a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerAnswer {
    /// The pointer belongs to a block with this many usable bytes.
    Block(usize),
    /// The engine has no block for the pointer, and it is unknown whether it records all blocks.
    Unknown,
    /// The engine records all blocks, and the pointer does not belong to a block.
    Fault(PointerFault),
}

/// The reason why a pointer does not belong to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerFault {
    /// The pointer is outside of all blocks.
    NotHeap,
    /// The pointer is inside a block, not at its start.
    Interior,
    /// The block was freed.
    Freed,
}

impl PointerAnswer {
    fn from_result(result: usize) -> Self {
        match result {
            0 => Self::Unknown,
            NOT_HEAP => Self::Fault(PointerFault::NotHeap),
            INTERIOR => Self::Fault(PointerFault::Interior),
            FREED => Self::Fault(PointerFault::Freed),
            bytes => Self::Block(bytes),
        }
    }
}

#[allow(unsafe_code, reason = "calls functions of another library")]
impl Marks {
    /// `None` if no engine is connected. `records` is the result of [`records`] for a block of the program's
    /// allocator.
    pub(crate) fn for_path(path: &str, records: bool) -> Option<Self> {
        let engine = engine()?;
        // SAFETY: the maker of the table guarantees that `path` only reads a text of this length.
        let path = unsafe { (engine.path)(path.as_ptr(), path.len()) };
        Some(Self { engine, path, allocator: if records { RECORDED } else { FOREIGN } })
    }

    /// Marks the block that starts at this address.
    pub(crate) fn block(self, start: *const u8) -> PointerAnswer {
        PointerAnswer::from_result((self.engine.mark)(start.cast(), self.path, self.allocator))
    }

    /// Marks the block that contains this address.
    pub(crate) fn enclosing(self, inside: *const u8) -> PointerAnswer {
        PointerAnswer::from_result((self.engine.mark)(inside.cast(), self.path, ENCLOSING | self.allocator))
    }

    /// Whether a live block contains this address, and no reporter has reported the block in this collection. Returns
    /// false if the run of this thread does not own the marks.
    pub(crate) fn is_unreported(self, inside: *const u8) -> bool {
        (self.engine.is_unreported)(inside.cast())
    }

    /// Adds `bytes` to the bytes that reports claim at the path.
    pub(crate) fn claim(self, bytes: i64) {
        (self.engine.claim)(self.path, u64::try_from(bytes).unwrap_or(0));
    }
}

/// Whether an engine records every live block of the allocator that allocated `block`.
pub(crate) fn records(block: *const u8) -> bool {
    engine().is_some_and(|engine| (engine.mark)(block.cast(), NO_PATH, PROBE) == 1)
}

/// Whether an engine records every live block of the program's allocator.
pub(crate) fn records_program() -> bool {
    if is_itself() {
        // This copy of the crate allocates its blocks outside of the program's allocator.
        return heap().is_some();
    }
    let probe = core::hint::black_box(Box::new(0_u64));
    records((&raw const *probe).cast())
}

/// Returns the sizes of blocks from an engine, without marking the blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSizes {
    engine: &'static EngineTable,
}

impl BlockSizes {
    /// `None` if no engine is connected.
    pub(crate) fn from_engine() -> Option<Self> {
        engine().map(|engine| Self { engine })
    }

    /// The usable bytes of the block that contains this address; `None` if the engine has no such block.
    pub(crate) fn around(self, inside: *const u8) -> Option<usize> {
        let bytes = (self.engine.usable)(inside.cast());
        (bytes != 0).then_some(bytes)
    }
}

/// Whether an engine has a block that starts at this address, and the stack that allocated the block. Any pointer is
/// allowed.
pub(crate) fn is_known(start: *const u8) -> bool {
    engine().is_some_and(|engine| (engine.site)(start.cast()) != 0)
}

/// Marks a block as reported for as long as the block lives. Counters call this function. Returns false if no engine
/// has the block.
pub(crate) fn mark_on_alloc(start: *const u8) -> bool {
    engine().is_some_and(|engine| (engine.mark)(start.cast(), NO_PATH, ON_ALLOC | FOREIGN) != 0)
}
