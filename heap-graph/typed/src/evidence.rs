//! Pointers that contradict the known types of blocks, until they are weighed.
//!
//! A pointer may be a stale word: of a vector beyond its length, of a local that was moved away, of a raw pointer. The block to
//! which it led is freed, and another one has its place. The stack of that one is right, and a pointer that says the same
//! proves it. A pointer is right, and the stack is not, where a buffer changed its elements in place, where bytes are room for
//! values, and where the compiler merged the functions of several types.

use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::debug_info::{DebugInfo, TypeId};
use crate::plan::PointerRole;
use crate::views::is_same;
use crate::walk::TypedContents;

/// The maximum number of rounds in which blocks get other types.
const MOST_ROUNDS: usize = 16;

/// The maximum number of pointers that are kept for one block.
const MOST_CLAIMS: usize = 64;

/// A pointer that contradicts what is known of its block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointerClaim {
    /// The block that has the pointer; `None` for a static.
    pub(crate) holder: Option<u32>,
    pub(crate) contents: TypedContents,
    /// It frees the block, whose size is that of its capacity.
    pub(crate) owns: bool,
}

/// Whether owners of bytes have them as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextEvidence {
    Unknown,
    /// They are text for an owner that may be a stale word.
    Perhaps,
    Text,
    /// They are bytes for an owner that is certainly there.
    Bytes,
}

impl TextEvidence {
    /// Adds the evidence of a pointer.
    pub(crate) fn add(&mut self, holding: PointerRole, is_sure: bool) {
        *self = match (holding, is_sure, *self) {
            (PointerRole::OwnsText, true, _) => Self::Text,
            (PointerRole::OwnsText, false, Self::Unknown) => Self::Perhaps,
            (PointerRole::Owns, true, Self::Unknown | Self::Perhaps) => Self::Bytes,
            (.., before) => before,
        };
    }

    /// Whether the bytes are text.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Perhaps)
    }
}

/// The evidence of all pointers.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// For each block how many pointers name its type, at most 255.
    agreeing: Vec<u8>,
    claims: BTreeMap<usize, Vec<PointerClaim>>,
    /// Blocks that have got their types from what contradicted them.
    decided: HashSet<usize>,
    /// Those of the last round.
    changed: HashSet<u32>,
    /// Types whose pointers lead to larger blocks, too.
    headers: HashSet<TypeId>,
    rounds: usize,
}

impl Evidence {
    pub(crate) fn new(blocks: usize) -> Self {
        Self {
            agreeing: vec![0; blocks],
            claims: BTreeMap::new(),
            decided: HashSet::new(),
            changed: HashSet::new(),
            headers: HashSet::new(),
            rounds: 0,
        }
    }

    /// Counts a pointer that names the type of its block. Gives whether one did before.
    pub(crate) fn confirm(&mut self, block: usize) -> bool {
        let count = &mut self.agreeing[block];
        let before = *count > 0;
        *count = count.saturating_add(1);
        before
    }

    /// Takes back a pointer that named the type of its block. If there were 255 or more, the number stays.
    pub(crate) fn retract(&mut self, block: usize) {
        let count = &mut self.agreeing[block];
        if *count < u8::MAX {
            *count = count.saturating_sub(1);
        }
    }

    /// Whether a pointer names the type of a block.
    pub(crate) fn is_confirmed(&self, block: usize) -> bool {
        self.agreeing[block] > 0
    }

    /// How many pointers name the type of a block.
    pub(crate) fn pointers(&self, block: usize) -> usize {
        self.agreeing[block].into()
    }

    /// Keeps a pointer that contradicts what is known of a block.
    pub(crate) fn claim(&mut self, block: usize, claim: PointerClaim) {
        if self.decided.contains(&block) {
            return;
        }
        let claims = self.claims.entry(block).or_default();
        if claims.len() < MOST_CLAIMS {
            claims.push(claim);
        }
    }

    /// Notes that a pointer of a type leads to the start of a block of another size.
    pub(crate) fn note_size(&mut self, of: TypeId, is_larger: bool) {
        if is_larger {
            self.headers.insert(of);
        }
    }

    /// Whether pointers of a type lead to larger blocks, too.
    pub(crate) fn is_header(&self, of: TypeId) -> bool {
        self.headers.contains(&of)
    }

    /// The blocks to weigh next, with the pointers that contradict them. Pointers from blocks that are weighed themselves wait.
    pub(crate) fn next(&mut self) -> Option<Vec<(usize, Vec<PointerClaim>)>> {
        self.rounds += 1;
        if self.claims.is_empty() || self.rounds > MOST_ROUNDS {
            return None;
        }
        let open: HashSet<u32> = self
            .claims
            .keys()
            .filter(|block| !self.is_confirmed(**block))
            .map(|block| *block as u32)
            .collect();
        let waits = |claims: &[PointerClaim]| {
            claims.iter().any(|claim| claim.holder.is_some_and(|holder| open.contains(&holder)))
        };
        let all = core::mem::take(&mut self.claims);
        let (waiting, ready): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.into_iter().partition(|(_, claims)| waits(claims));
        let (waiting, ready) = if ready.is_empty() { (BTreeMap::new(), waiting) } else { (waiting, ready) };
        self.claims = waiting;
        Some(ready.into_iter().collect())
    }

    /// The type that most pointers name, with their number; the first one of equals.
    pub(crate) fn heaviest(
        &self,
        info: &DebugInfo,
        claims: &[PointerClaim],
    ) -> Option<(PointerClaim, usize)> {
        let mut sums: Vec<(PointerClaim, usize)> = Vec::new();
        for claim in claims {
            match sums.iter_mut().find(|(known, _)| is_same(info, known.contents, claim.contents)) {
                Some((known, count)) => {
                    *count += 1;
                    // An owner knows the length, too.
                    if claim.owns && !known.owns {
                        *known = *claim;
                    }
                }
                None => sums.push((*claim, 1)),
            }
        }
        let most = sums.iter().map(|(_, count)| *count).max()?;
        sums.into_iter().find(|(_, count)| *count == most)
    }

    /// A block gets the type that this many pointers name.
    pub(crate) fn decide(&mut self, block: usize, pointers: usize) {
        self.decided.insert(block);
        self.agreeing[block] = u8::try_from(pointers).unwrap_or(u8::MAX);
        self.changed.extend(u32::try_from(block));
    }

    /// Forgets the pointers of blocks that have other types now.
    pub(crate) fn forget_decided(&mut self) {
        let changed = core::mem::take(&mut self.changed);
        if changed.is_empty() {
            return;
        }
        self.claims.retain(|_, claims| {
            claims.retain(|claim| claim.holder.is_none_or(|holder| !changed.contains(&holder)));
            !claims.is_empty()
        });
    }
}
