//! Ids of stacks that are the same in all files.

use super::hash::TableHash;
use crate::stack_profile::{ProfileStackId, StackProfile};

/// The id of each stack, by its number: a hash of the build ids and offsets of its addresses. An address without a build id
/// counts with its module's path; one without an offset, with its function, file and line. So a stack has the same id on all
/// machines and whether or not symbols were found.
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
