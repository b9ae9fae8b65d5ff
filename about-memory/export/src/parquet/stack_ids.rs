//! Ids of stacks. A stack has the same id in all files.

use super::hash::TableHash;
use crate::stack_profile::{ProfileStackId, StackProfile};

/// The id of each stack, by its number: a hash of the build ids and offsets of its addresses. For an address without a
/// build id, the hash uses the module's path. For an address without an offset, it uses the function, file and line. So
/// a stack has the same id on all machines, with or without symbols.
pub(super) fn stack_ids(stacks: &StackProfile) -> Vec<u64> {
    let id = |stack: usize| {
        let mut hash = TableHash::new();
        for address in stacks.addresses(ProfileStackId(stack as u32)) {
            let frame = stacks.frame(address[0]);
            match frame.module.zip(frame.offset) {
                Some((module, offset)) => {
                    let module = &stacks.modules()[module.index()];
                    hash.text(if module.build_id.is_empty() { &module.path } else { &module.build_id });
                    hash.word(offset);
                }
                None => {
                    hash.maybe(frame.function);
                    hash.maybe(frame.file);
                    hash.word(frame.line.map_or(u64::MAX, u64::from));
                }
            }
        }
        hash.finish()[0]
    };
    (0..stacks.stack_count()).map(id).collect()
}
