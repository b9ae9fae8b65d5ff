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
    /// The stack and the pointer name different types. The pointer is right, except where
    /// [`outweighed`](Self::outweighed) counts it.
    pub disagree: u64,
    /// The stack names a type of the same layout as the pointer's because the compiler merged functions; the calling functions
    /// on the stack prove the pointer's type: they are instances for it.
    pub same_layout: u64,
    /// The stack names no type that has a layout.
    pub owner_only: u64,
    /// Two pointers name different types, and the stack names neither. The block has the type that most pointers name.
    pub owners_disagree: u64,
    /// The pointer names another type than the stack, and the block has the type of the stack: other pointers name that type,
    /// too, or pointers of this one lead to blocks of several sizes. The pointer is a stale word: it leads to memory that
    /// another block has now, or its type stands for others.
    pub outweighed: u64,
    /// Blocks without a layout, whose words count as pointers if they lead to the start of a block.
    pub without_layout: u64,
    disagreements: TypePairs,
    merged: TypePairs,
}

/// The type that the stacks name, the type that pointers name, and the number of these pointers.
type TypePairs = BTreeMap<(String, String), u64>;

impl Agreement {
    /// Counts a pointer that names another type than the stack.
    pub(crate) fn contradict(&mut self, by_stack: String, by_owner: String, merged: bool) {
        let (count, pairs) = match merged {
            true => (&mut self.same_layout, &mut self.merged),
            false => (&mut self.disagree, &mut self.disagreements),
        };
        *count += 1;
        let types = (by_stack, by_owner);
        if pairs.len() < MOST || pairs.contains_key(&types) {
            *pairs.entry(types).or_default() += 1;
        }
    }

    /// The types that stacks name, those that pointers name instead, and the number of pointers.
    pub fn disagreements(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        texts(&self.disagreements)
    }

    /// The same for the pointers that [`same_layout`](Self::same_layout) counts.
    pub fn merged(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        texts(&self.merged)
    }
}

fn texts(pairs: &TypePairs) -> impl Iterator<Item = (&str, &str, u64)> {
    pairs.iter().map(|((stack, owner), count)| (&**stack, &**owner, *count))
}
