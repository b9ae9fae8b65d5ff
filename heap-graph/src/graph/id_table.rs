//! A hash table from ids to the indices of nodes. It stores only indices, so that it is small, and so that a caller
//! can prefetch the memory of a lookup.

use core::hash::BuildHasher as _;

use hashbrown::DefaultHashBuilder;

use super::NodeId;
use super::error::GraphError;
use crate::arrays::huge;
use crate::prefetch::{AHEAD, prefetch};

const EMPTY: u32 = u32::MAX;

/// The indices of nodes by the hashes of their ids. The ids themselves are in the graph.
#[derive(Clone, Debug)]
pub(crate) struct IdTable {
    /// The length is a power of two, and at least a fifth of the slots is empty. If the slot of an id is taken, the
    /// id uses the next empty slot.
    slots: Box<[u32]>,
    /// Seeded randomly, so that a file cannot put all its ids into one slot.
    hasher: DefaultHashBuilder,
}

impl IdTable {
    /// The table for the ids of all nodes.
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

    /// The nodes with these ids. The error is the position of the first id without a node.
    pub(crate) fn find_all(&self, wanted: &[u64], ids: &[u64]) -> Result<Box<[u32]>, usize> {
        let mut found = huge(Vec::with_capacity(wanted.len()));
        // In files in the order of a breadth-first walk, nodes are in the order of the edges that first reach them.
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

    /// The memory of the table in bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.slots)
    }
}
