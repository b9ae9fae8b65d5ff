//! How a dump or a recording becomes stacks.

/// How a dump or a recording becomes [`StackProfile`](crate::StackProfile).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProfileOptions {
    /// Keep the frames that say nothing about the program: those of allocators, of Rust's library, and through which
    /// threads and `main` start. Default: no.
    pub(crate) all_frames: bool,
    /// Find the types of blocks, for formats with labels. Default: no.
    pub(crate) types: bool,
    /// Count the bytes that the program requested, and not those that it can use. Default: no.
    pub(crate) requested: bool,
    /// Count the bytes that the program requested as a value of their own,
    /// [`ProfileValue::LiveRequestedBytes`]; cumulative dumps have no such value. Default: no.
    pub(crate) both: bool,
}

impl ProfileOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`all_frames`](Self::all_frames).
    #[must_use]
    pub fn all_frames(mut self, all_frames: bool) -> Self {
        self.all_frames = all_frames;
        self
    }

    /// Sets [`types`](Self::types).
    #[must_use]
    pub fn types(mut self, types: bool) -> Self {
        self.types = types;
        self
    }

    /// Sets [`requested`](Self::requested).
    #[must_use]
    pub fn requested(mut self, requested: bool) -> Self {
        self.requested = requested;
        self
    }

    /// Sets [`both`](Self::both).
    #[must_use]
    pub fn both(mut self, both: bool) -> Self {
        self.both = both;
        self
    }
}
