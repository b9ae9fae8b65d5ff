//! Tags that are entered and left by a key, without a guard.

use std::sync::atomic::{AtomicU64, Ordering};

use super::contexts::EnteredTag;
use super::open_guards;
use super::path_tags::Tag;

/// Enters and leaves tags by keys, for code that cannot keep a [`TagGuard`](super::path_tags::TagGuard): a layer of
/// `tracing` knows only the number of a span. Each thread has its own entries, and they may end in any order.
#[derive(Debug)]
pub struct KeyedTags {
    /// Distinguishes the keys of this value from those of others.
    number: u64,
}

impl KeyedTags {
    /// Makes a set of keys.
    #[allow(clippy::new_without_default, reason = "each value has keys of its own")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Makes this the tag of this thread until [`exit`](Self::exit) with the same key.
    pub fn enter(&self, tag: Tag, key: u64) {
        open_guards::open_key(self.number, key, EnteredTag::Path(tag.0));
    }

    /// Ends the newest entry of this key on this thread. Without such an entry, does nothing.
    pub fn exit(&self, key: u64) {
        open_guards::close_key(self.number, key);
    }
}
