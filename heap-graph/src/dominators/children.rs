//! The nodes that each node immediately dominates, by retained size.

use core::cmp::Reverse;

use super::NOTHING;
use crate::arrays::huge;
use crate::prefetch::{AHEAD, prefetch};

#[derive(Debug)]
pub(super) struct ChildLists {
    /// The end of each node's part of `nodes`.
    ends: Box<[u32]>,
    nodes: Box<[u32]>,
}

impl ChildLists {
    /// Builds lists ordered by size, the greatest first, and then by rank, the greatest first. The numbers of
    /// dominators are inverted.
    pub(super) fn new<T: Copy + Ord>(inverted: &[u32], retained: &[T], ranks: &[u32]) -> Self {
        let mut ends = huge(vec![0_u32; inverted.len()]);
        let mut total = 0;
        for (node, dominator) in inverted.iter().enumerate() {
            if let Some(ahead) = inverted.get(node + AHEAD) {
                prefetch(&ends, !*ahead as usize);
            }
            if *dominator != NOTHING {
                ends[!*dominator as usize] += 1;
                total += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            // `end` is the start of the part here. Filling the part moves it to the part's end.
            sum += core::mem::replace(end, sum);
        }
        let mut nodes = huge(vec![0; total]);
        for (node, dominator) in inverted.iter().enumerate() {
            if let Some(ahead) = inverted.get(node + 2 * AHEAD) {
                prefetch(&ends, !*ahead as usize);
            }
            if let Some(end) = inverted.get(node + AHEAD).and_then(|ahead| ends.get(!*ahead as usize)) {
                prefetch(&nodes, *end as usize);
            }
            if *dominator != NOTHING {
                let end = &mut ends[!*dominator as usize];
                nodes[*end as usize] = node as u32;
                *end += 1;
            }
        }
        let mut start = 0;
        // The sizes are at random places of memory, so each is looked up only once.
        let mut sized = Vec::new();
        for end in &ends {
            let list = start..*end as usize;
            start = *end as usize;
            if list.len() < 2 {
                continue;
            }
            sized.clear();
            sized.extend(list.clone().map(|place| {
                if let Some(ahead) = nodes.get(place + AHEAD) {
                    prefetch(retained, *ahead as usize);
                    prefetch(ranks, *ahead as usize);
                }
                let node = nodes[place];
                (Reverse((retained[node as usize], ranks[node as usize])), node)
            }));
            // All ranks differ, so no two elements are equal.
            sized.sort_unstable();
            for (node, (_, sorted)) in nodes[list].iter_mut().zip(&sized) {
                *node = *sorted;
            }
        }
        Self { ends: ends.into(), nodes: nodes.into() }
    }

    pub(super) fn children(&self, node: u32) -> &[u32] {
        let start = if node == 0 { 0 } else { self.ends[node as usize - 1] };
        &self.nodes[start as usize..self.ends[node as usize] as usize]
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.ends) + size_of_val(&*self.nodes)
    }
}
