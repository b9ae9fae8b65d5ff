//! The types of blocks, by stack.

use dmd_analyze::Dump;
use rustc_hash::FxHashMap;

/// The number of a type for each stack.
#[derive(Debug, Default)]
pub(crate) struct StackTypes {
    pub(crate) names: Vec<String>,
    /// The number of each stack's type. Empty without [`ProfileOptions::types`](super::ProfileOptions::types).
    of_stacks: Vec<Option<u32>>,
}

impl StackTypes {
    pub(crate) fn new(dump: &Dump) -> Self {
        let found = dump.types();
        let mut types = Self::default();
        let mut known: FxHashMap<usize, Option<u32>> = FxHashMap::default();
        for stack in 0..dump.stacks().len() {
            let number = found.number(stack).unwrap_or(usize::MAX);
            let name = *known.entry(number).or_insert_with(|| {
                types.names.push(found.get(stack)?.type_name()?);
                Some(types.names.len() as u32 - 1)
            });
            types.of_stacks.push(name);
        }
        types
    }

    pub(crate) fn get(&self, stack: usize) -> Option<u32> {
        self.of_stacks.get(stack).copied().flatten()
    }
}
