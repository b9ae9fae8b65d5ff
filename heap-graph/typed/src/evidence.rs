//! Stores pointers that contradict the known types of blocks, until they are weighed.
//!
//! A pointer may be a stale word: in a vector beyond its length, in a local that was moved, or in an unused raw
//! pointer. The block to which it led has been freed, and another block has its place. Then the stack of the new block
//! names the right type, and a live pointer with the same type proves this. In four cases the pointer names the right
//! type and the stack a wrong one: another owner or other elements took over a buffer, bytes are room for values, two
//! versions of a type have the same name, or the compiler merged the functions of several types.

use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::debug_info::{DebugInfo, TypeId};
use crate::plan::PointerRole;
use crate::views::is_same;
use crate::walk::TypedContents;

/// The maximum number of rounds in which blocks get other types.
const MOST_ROUNDS: usize = 16;

/// The maximum number of contradicting pointers that are stored for a block.
const MOST_CLAIMS: usize = 64;

/// A pointer that contradicts the known type of its block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointerClaim {
    /// The block that contains the pointer; `None` for a static.
    pub(crate) holder: Option<u32>,
    pub(crate) contents: TypedContents,
    /// Whether the pointer owns the block: it frees the block, and its capacity is the block's size.
    pub(crate) owns: bool,
}

/// Whether the owners of a block of bytes treat the bytes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextEvidence {
    Unknown,
    /// The bytes are text for an owner that may be a stale word.
    Perhaps,
    Text,
    /// The bytes are not text for an owner that is certainly live.
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
    /// For each block, the number of pointers that name its type, at most 255.
    agreeing: Vec<u8>,
    claims: BTreeMap<usize, Vec<PointerClaim>>,
    /// The blocks whose types were changed to the types of contradicting pointers.
    decided: HashSet<usize>,
    /// The blocks whose types changed in the last round.
    changed: HashSet<u32>,
    /// Types whose pointers also lead to larger blocks.
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

    /// Counts a pointer that names the type of its block. Returns whether an earlier pointer has named the same type.
    pub(crate) fn confirm(&mut self, block: usize) -> bool {
        let count = &mut self.agreeing[block];
        let before = *count > 0;
        *count = count.saturating_add(1);
        before
    }

    /// Removes a pointer that named the type of its block. A count of 255 stays, since the real number may be larger.
    pub(crate) fn retract(&mut self, block: usize) {
        let count = &mut self.agreeing[block];
        if *count < u8::MAX {
            *count = count.saturating_sub(1);
        }
    }

    /// Whether a pointer names the type of the block.
    pub(crate) fn is_confirmed(&self, block: usize) -> bool {
        self.agreeing[block] > 0
    }

    /// The number of pointers that name the type of the block.
    pub(crate) fn pointers(&self, block: usize) -> usize {
        self.agreeing[block].into()
    }

    /// Stores a pointer that contradicts the known type of a block.
    pub(crate) fn claim(&mut self, block: usize, claim: PointerClaim) {
        if self.decided.contains(&block) {
            return;
        }
        let claims = self.claims.entry(block).or_default();
        if claims.len() < MOST_CLAIMS {
            claims.push(claim);
        }
    }

    /// Records that a pointer to values of the type `of` leads to the start of a block of another size.
    pub(crate) fn note_size(&mut self, of: TypeId, is_larger: bool) {
        if is_larger {
            self.headers.insert(of);
        }
    }

    /// Whether pointers of a type also lead to larger blocks.
    pub(crate) fn is_header(&self, of: TypeId) -> bool {
        self.headers.contains(&of)
    }

    /// The blocks to weigh next, with the pointers that contradict them. A block waits for a later round if another
    /// block that is not weighed yet contains such a pointer. If all blocks wait, returns all.
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

    /// Returns the type that most pointers name, and the number of these pointers. If several types have the same
    /// number of pointers, returns the first of these types.
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
                    // A pointer that owns the block also has the length.
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

    /// Records that the block gets the type that this many pointers name.
    pub(crate) fn decide(&mut self, block: usize, pointers: usize) {
        self.decided.insert(block);
        self.agreeing[block] = u8::try_from(pointers).unwrap_or(u8::MAX);
        self.changed.extend(u32::try_from(block));
    }

    /// Removes the claims of the pointers in blocks whose types have changed.
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
