//! The entries that the page shows, by number.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::http::HttpRefusal;
use crate::session::Session;

/// An entry of a [`ServedList`].
pub(super) trait ServedEntry: Clone {
    /// The name of the list in the session's events.
    const LIST: &'static str;
    /// The answer to a request for an unknown number.
    const UNKNOWN: &'static str;
    /// The default maximum number of entries that pages made.
    const MOST: NonZeroUsize;

    /// Whether the server was started with this entry.
    fn is_given(&self) -> bool;
}

/// The entries that the server was started with, and the latest entries that pages made.
#[derive(Debug)]
pub(super) struct ServedList<T> {
    /// The last number in use, and the entries by number.
    all: Mutex<(u32, BTreeMap<u32, T>)>,
    /// The session. Its events inform the pages about new entries.
    session: Session,
    most: usize,
}

impl<T: ServedEntry> ServedList<T> {
    /// Creates an empty list. It keeps `most` entries that pages made; `None` selects the default.
    pub(super) fn new(session: Session, most: Option<NonZeroUsize>) -> Self {
        Self { all: Mutex::new((0, BTreeMap::new())), session, most: most.unwrap_or(T::MOST).get() }
    }

    fn all(&self) -> MutexGuard<'_, (u32, BTreeMap<u32, T>)> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry, and returns its number. If pages have made more entries than the maximum, removes the oldest
    /// entry that a page made.
    pub(super) fn add(&self, entry: T) -> u32 {
        let mut all = self.all();
        all.0 += 1;
        let id = all.0;
        all.1.insert(id, entry);
        let mut made = all.1.iter().filter(|(_, entry)| !entry.is_given()).map(|(id, _)| *id);
        let oldest = made.next();
        if made.count() >= self.most
            && let Some(oldest) = oldest
        {
            all.1.remove(&oldest);
        }
        drop(all);
        self.session.list_changed(T::LIST);
        id
    }

    /// Calls `change` with an entry. `None` if the list has no such number.
    pub(super) fn change<U>(&self, id: u32, change: impl FnOnce(&mut T) -> U) -> Option<U> {
        self.all().1.get_mut(&id).map(change)
    }

    pub(super) fn get(&self, id: u32) -> Result<T, HttpRefusal> {
        self.all().1.get(&id).cloned().ok_or(HttpRefusal::new(404, T::UNKNOWN))
    }

    pub(super) fn list(&self) -> Vec<(u32, T)> {
        self.all().1.iter().map(|(id, entry)| (*id, entry.clone())).collect()
    }
}
