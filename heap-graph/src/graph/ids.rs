//! From ids to places: a table without anything but places, so that it is small, and so that what a lookup
//! will touch can be fetched before.

use core::hash::BuildHasher as _;

use hashbrown::DefaultHashBuilder;

use super::NodeId;
use crate::error::GraphError;
use crate::huge::huge;
use crate::prefetch::{AHEAD, prefetch};

const EMPTY: u32 = u32::MAX;

/// The ids themselves lie in the graph.
#[derive(Clone, Debug)]
pub(crate) struct IdTable {
    /// A power of two of places, a fifth of them empty at least. Where one is taken the next is tried.
    slots: Box<[u32]>,
    /// Its hashes cannot be foreseen: no file can have all its ids in one place.
    hasher: DefaultHashBuilder,
}

impl IdTable {
    /// The table of these ids.
    pub(crate) fn new(ids: &[u64]) -> Result<Self, GraphError> {
        let length = (ids.len() * 5 / 4 + 1).next_power_of_two();
        let mut slots = huge(Vec::with_capacity(length));
        slots.resize(length, EMPTY);
        let mut table = Self { slots: slots.into(), hasher: DefaultHashBuilder::default() };
        for (index, id) in ids.iter().enumerate() {
            if let Some(ahead) = ids.get(index + AHEAD) {
                prefetch(&table.slots, table.slot(*ahead));
            }
            let mut slot = table.slot(*id);
            while table.slots[slot] != EMPTY {
                let first = table.slots[slot] as usize;
                if ids[first] == *id {
                    return Err(GraphError::DuplicateId { id: NodeId(*id), first, second: index });
                }
                slot = table.after(slot);
            }
            table.slots[slot] = index as u32;
        }
        Ok(table)
    }

    #[inline]
    fn slot(&self, id: u64) -> usize {
        self.hasher.hash_one(id) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    #[inline]
    pub(crate) fn find(&self, id: u64, ids: &[u64]) -> Option<u32> {
        let mut slot = self.slot(id);
        loop {
            let index = self.slots[slot];
            if index == EMPTY {
                return None;
            }
            if ids[index as usize] == id {
                return Some(index);
            }
            slot = self.after(slot);
        }
    }

    /// All of these; or the place of the first that is none.
    pub(crate) fn find_all(&self, wanted: &[u64], ids: &[u64]) -> Result<Box<[u32]>, usize> {
        let mut found = huge(Vec::with_capacity(wanted.len()));
        // In the order of a breadth-first walk, nodes stand as the edges that first reach them do.
        let mut expected = 1;
        for (place, id) in wanted.iter().enumerate() {
            if let Some(ahead) = wanted.get(place + 2 * AHEAD) {
                prefetch(&self.slots, self.slot(*ahead));
            }
            if let Some(ahead) = wanted.get(place + AHEAD) {
                prefetch(ids, self.slots[self.slot(*ahead)] as usize);
            }
            if ids.get(expected) == Some(id) {
                found.push(expected as u32);
                expected += 1;
            } else {
                found.push(self.find(*id, ids).ok_or(place)?);
            }
        }
        Ok(found.into())
    }

    /// Bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.slots)
    }
}
