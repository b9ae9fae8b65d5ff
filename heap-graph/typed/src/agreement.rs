//! Compares the two sources of types: allocation stacks and pointers. Their agreement is the evidence that both are
//! right.

use std::collections::BTreeMap;

/// The maximum number of different disagreements that are kept.
const MOST: usize = 1000;

/// Compares stacks with pointers. Counts only pointers that are certainly live and whose type fits their block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreement {
    /// The stack and the pointer name the same type.
    pub agree: u64,
    /// The pointer has another view of the same memory: its bytes, or its first member.
    pub views: u64,
    /// The stack and the pointer name different types, and the pointer is right. [`outweighed`](Self::outweighed)
    /// counts the pointers that are wrong.
    pub disagree: u64,
    /// The compiler merged functions, so the stack names another type with the same layout as the pointer's type.
    /// Outer functions on the stack are instances for the pointer's type, and so prove that type.
    pub same_layout: u64,
    /// The stack names no type with a layout.
    pub owner_only: u64,
    /// Two pointers name different types, and the stack names neither type. The block has the type that most pointers
    /// name.
    pub owners_disagree: u64,
    /// The pointer names another type than the stack, and the stack is right. There are two cases. If other pointers
    /// also name the stack's type, the pointer is a stale word: it leads to memory that another block has now. If
    /// pointers of the pointer's type also lead to larger blocks, that type is only the header of other types.
    pub outweighed: u64,
    /// The number of blocks without a layout. Their words count as pointers if they lead to the start of a block.
    pub without_layout: u64,
    disagreements: TypePairs,
    merged: TypePairs,
}

/// The type that stacks name, the type that pointers name, and the number of these pointers.
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

    /// The disagreements: the type that stacks name, the type that pointers name, and the number of pointers.
    pub fn disagreements(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        texts(&self.disagreements)
    }

    /// Like [`disagreements`](Self::disagreements), for the pointers that [`same_layout`](Self::same_layout) counts.
    pub fn merged(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        texts(&self.merged)
    }
}

fn texts(pairs: &TypePairs) -> impl Iterator<Item = (&str, &str, u64)> {
    pairs.iter().map(|((stack, owner), count)| (&**stack, &**owner, *count))
}
