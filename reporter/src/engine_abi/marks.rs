//! Marks on blocks that reports count.

use super::{
    ENCLOSING, EngineTable, FOREIGN, FREED, INTERIOR, NO_PATH, NOT_HEAP, ON_ALLOC, PROBE, PathNumber,
    RECORDED, engine, heap, is_itself,
};

/// Marks blocks for one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    engine: &'static EngineTable,
    pub(super) path: PathNumber,
    /// Says whether the engine records the program's allocator.
    allocator: u32,
}

/// The state of a pointer in an engine's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerAnswer {
    /// The usable bytes of its block.
    Block(usize),
    /// Nothing, and it may not know all blocks.
    Unknown,
    /// The engine knows all blocks, and this pointer has none.
    Fault(PointerFault),
}

/// Why a pointer is not that of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerFault {
    /// It is in no block.
    NotHeap,
    /// It is inside a block.
    Interior,
    /// Its block was freed.
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
    /// `None` if no engine is connected. `records` is what [`records`] says of a block of the program's allocator.
    pub(crate) fn for_path(path: &str, records: bool) -> Option<Self> {
        let engine = engine()?;
        // SAFETY: the maker of the table guarantees that `path` only reads a text of this length.
        let path = unsafe { (engine.path)(path.as_ptr(), path.len()) };
        Some(Self { engine, path, allocator: if records { RECORDED } else { FOREIGN } })
    }

    /// The block that starts here.
    pub(crate) fn block(self, start: *const u8) -> PointerAnswer {
        PointerAnswer::from_result((self.engine.mark)(start.cast(), self.path, self.allocator))
    }

    /// The block that has this address inside.
    pub(crate) fn enclosing(self, inside: *const u8) -> PointerAnswer {
        PointerAnswer::from_result((self.engine.mark)(inside.cast(), self.path, ENCLOSING | self.allocator))
    }

    /// Whether a live block is here that nobody has reported in this collection; false if that is unknown.
    pub(crate) fn is_unreported(self, inside: *const u8) -> bool {
        (self.engine.is_unreported)(inside.cast())
    }

    /// Tells the engine how many bytes a report claims at the path.
    pub(crate) fn claim(self, bytes: i64) {
        (self.engine.claim)(self.path, u64::try_from(bytes).unwrap_or(0));
    }
}

/// Whether an engine has every live block of the allocator that this block is from.
pub(crate) fn records(block: *const u8) -> bool {
    engine().is_some_and(|engine| (engine.mark)(block.cast(), NO_PATH, PROBE) == 1)
}

/// Whether an engine has every live block of the program's allocator.
pub(crate) fn records_program() -> bool {
    if is_itself() {
        // The blocks of this copy of the crate are not the program's.
        return heap().is_some();
    }
    let probe = core::hint::black_box(Box::new(0_u64));
    records((&raw const *probe).cast())
}

/// The sizes of the blocks that an engine records. Asking for one marks nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSizes {
    engine: &'static EngineTable,
}

impl BlockSizes {
    /// `None` if no engine is connected.
    pub(crate) fn from_engine() -> Option<Self> {
        engine().map(|engine| Self { engine })
    }

    /// The usable bytes of the block that has this address inside, if the engine knows it.
    pub(crate) fn around(self, inside: *const u8) -> Option<usize> {
        let bytes = (self.engine.usable)(inside.cast());
        (bytes != 0).then_some(bytes)
    }
}

/// Whether an engine knows a block that starts here, with the stack that allocated it. Any pointer may be asked about.
pub(crate) fn is_known(start: *const u8) -> bool {
    engine().is_some_and(|engine| (engine.site)(start.cast()) != 0)
}

/// Marks a block as reported for as long as it lives, by a counter. False if no engine knows the block.
pub(crate) fn mark_on_alloc(start: *const u8) -> bool {
    engine().is_some_and(|engine| (engine.mark)(start.cast(), NO_PATH, ON_ALLOC | FOREIGN) != 0)
}
