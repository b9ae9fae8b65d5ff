//! Options for converting a dump or a recording to stacks.

/// Options for converting a dump or a recording to a [`StackProfile`](crate::StackProfile).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProfileOptions {
    /// Whether to keep frames of allocators and of Rust's library, and frames through which threads and `main` start.
    /// These frames contain no code of the program. Default: no.
    pub(crate) all_frames: bool,
    /// Whether to find the types of blocks, for formats with labels. Default: no.
    pub(crate) types: bool,
    /// Whether bytes are requested bytes instead of usable bytes. Default: no.
    pub(crate) requested: bool,
    /// Whether requested bytes are an additional value, [`ProfileValue::LiveRequestedBytes`]. Profiles of cumulative
    /// dumps never have this value. Default: no.
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
