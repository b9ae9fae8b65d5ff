//! Marks on blocks that reports count.

use super::{ENCLOSING, EngineTable, NO_PATH, ON_ALLOC, PathNumber, engine};

/// Marks blocks for one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    engine: &'static EngineTable,
    pub(super) path: PathNumber,
}

#[allow(unsafe_code, reason = "calls functions of another library")]
impl Marks {
    /// `None` if no engine is connected.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let engine = engine()?;
        // SAFETY: the maker of the table guarantees that `path` only reads a text of this length.
        let path = unsafe { (engine.path)(path.as_ptr(), path.len()) };
        Some(Self { engine, path })
    }

    /// The usable bytes of the block that starts here.
    pub(crate) fn block(self, start: *const u8) -> Option<usize> {
        let bytes = (self.engine.mark)(start.cast(), self.path, 0);
        (bytes != 0).then_some(bytes)
    }

    /// The usable bytes of the block that has this address inside.
    pub(crate) fn enclosing(self, inside: *const u8) -> Option<usize> {
        let bytes = (self.engine.mark)(inside.cast(), self.path, ENCLOSING);
        (bytes != 0).then_some(bytes)
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

/// Marks a block as reported for as long as it lives, by a counter. False if no engine knows the block.
pub(crate) fn mark_on_alloc(start: *const u8) -> bool {
    engine().is_some_and(|engine| (engine.mark)(start.cast(), NO_PATH, ON_ALLOC) != 0)
}
