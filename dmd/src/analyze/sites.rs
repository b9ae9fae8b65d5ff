//! The frames of stacks of this very process, with functions and lines.

use rustc_hash::FxHashSet;

use super::allocators::AllocatorFrames;
use super::dark_matter::{look_up, names};
use crate::engine::ENGINE;
use crate::modules::Modules;
use crate::trace_tree::TraceId;

/// The texts of a stack without the allocator's own frames, innermost first. To be called inside the
/// engine's guard.
pub(crate) fn texts(trace: TraceId) -> Vec<String> {
    let frames: Vec<usize> = ENGINE.tree.frames(trace).collect();
    let mut names = names();
    if frames.iter().any(|pc| !names.contains_key(pc)) {
        // Opening a file with symbols costs more than all lookups in it, and who asks for one stack will
        // ask for those of the other blocks.
        let mut traces = FxHashSet::from_iter([trace.0]);
        ENGINE.table().for_each(|_, block| {
            traces.insert(block.trace.0);
        });
        let asked = traces.iter().flat_map(|trace| ENGINE.tree.frames(TraceId(*trace))).collect();
        look_up(&mut names, asked, &Modules::now());
    }
    let texts = || frames.iter().filter_map(|pc| names.get(pc)).flatten().map(|name| &**name);
    let own = texts().take_while(|text| AllocatorFrames::CAndRust.has(text)).count();
    // A stack of nothing else is better than none.
    let own = if own == texts().count() { 0 } else { own };
    texts().skip(own).map(str::to_owned).collect()
}
