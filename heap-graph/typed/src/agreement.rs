//! How far the two sources of types agree: the proof that both are right.

use std::collections::BTreeMap;

/// The maximum number of different disagreements that are kept.
const MOST: usize = 1000;

/// Counts of pointers that are live for certain, whose type fits the block to which they lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreement {
    /// The stack and the pointer name the same type.
    pub agree: u64,
    /// The pointer looks at the same memory in another way: at its bytes, or at its first member.
    pub views: u64,
    /// The stack and the pointer name different types. The pointer is right.
    pub disagree: u64,
    /// The stack names no type that has a layout.
    pub owner_only: u64,
    /// Two pointers name different types. The block has the type of one of them.
    pub owners_disagree: u64,
    /// Blocks without a layout, whose words count as pointers if they lead to the start of a block.
    pub without_layout: u64,
    disagreements: BTreeMap<(String, String), u64>,
}

impl Agreement {
    pub(crate) fn note(&mut self, types: (String, String)) {
        if self.disagreements.len() < MOST || self.disagreements.contains_key(&types) {
            *self.disagreements.entry(types).or_default() += 1;
        }
    }

    /// The types that stacks name, those that pointers name instead, and the number of pointers.
    pub fn disagreements(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.disagreements.iter().map(|((stack, owner), count)| (&**stack, &**owner, *count))
    }
}
