//! The dumps and recordings that the page shows, by number, as the data that the page reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The dumps that pages made and that the server keeps. A new one pushes out the oldest of them.
const MOST: usize = 20;

#[derive(Clone, Debug)]
pub(super) struct Stacks {
    pub(super) title: String,
    pub(super) data: Arc<Vec<u8>>,
    /// Whether the server was started with it.
    is_given: bool,
}

#[derive(Debug, Default)]
pub(super) struct AllStacks(Mutex<(u32, BTreeMap<u32, Stacks>)>);

impl AllStacks {
    fn all(&self) -> MutexGuard<'_, (u32, BTreeMap<u32, Stacks>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the stacks of a file that the server is started with, or of a dump that a page asked for.
    pub(super) fn add(&self, title: String, data: Vec<u8>, is_given: bool) -> u32 {
        let mut all = self.all();
        all.0 += 1;
        let id = all.0;
        all.1.insert(id, Stacks { title, data: Arc::new(data), is_given });
        let mut made = all.1.iter().filter(|(_, stacks)| !stacks.is_given).map(|(id, _)| *id);
        let oldest = made.next();
        if made.count() >= MOST
            && let Some(oldest) = oldest
        {
            all.1.remove(&oldest);
        }
        id
    }

    pub(super) fn get(&self, id: u32) -> Option<Stacks> {
        self.all().1.get(&id).cloned()
    }

    pub(super) fn list(&self) -> Vec<(u32, String)> {
        self.all().1.iter().map(|(id, stacks)| (*id, stacks.title.clone())).collect()
    }
}
