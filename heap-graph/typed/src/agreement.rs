//! How far the two sources of types agree: the proof that both are right.

use std::collections::BTreeMap;

use crate::debug_info::TypeId;

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
    /// The stack names a type or another one of the same layout, as the compiler has merged functions, and the pointer says
    /// which other one. The function's name may say that it has other instances; otherwise pointers to the blocks of one
    /// type of stacks name at least two other types of its size.
    pub same_layout: u64,
    /// The stack names no type that has a layout.
    pub owner_only: u64,
    /// Two pointers name different types. The block has the type of one of them.
    pub owners_disagree: u64,
    /// Blocks without a layout, whose words count as pointers if they lead to the start of a block.
    pub without_layout: u64,
    disagreements: BTreeMap<(String, String), u64>,
    /// For each type of stacks: the types of the same size that pointers name instead.
    opposed: BTreeMap<TypeId, BTreeMap<TypeId, u64>>,
}

impl Agreement {
    pub(crate) fn note(&mut self, types: (String, String)) {
        if self.disagreements.len() < MOST || self.disagreements.contains_key(&types) {
            *self.disagreements.entry(types).or_default() += 1;
        }
    }

    /// Notes a pointer that names another type of the same size as the stack.
    pub(crate) fn oppose(&mut self, by_stack: TypeId, by_owner: TypeId) {
        *self.opposed.entry(by_stack).or_default().entry(by_owner).or_default() += 1;
    }

    /// Counts what pointers say of merged functions, once all are compared.
    pub(crate) fn finish(&mut self) {
        for owners in core::mem::take(&mut self.opposed).into_values().filter(|owners| owners.len() > 1) {
            let pointers: u64 = owners.values().sum();
            self.disagree -= pointers;
            self.same_layout += pointers;
        }
    }

    /// The types that stacks name, those that pointers name instead, and the number of pointers, also for merged functions.
    pub fn disagreements(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.disagreements.iter().map(|((stack, owner), count)| (&**stack, &**owner, *count))
    }
}
