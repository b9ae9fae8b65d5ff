//! The stacks that allocated the blocks of this process, for a graph of them.

use core::ffi::c_void;

use memory_reporter::bridge::SiteFrame;

use crate::dump::modules::Modules;
use crate::engine::{ENGINE, Phase};
use crate::system::slot::Inside;
use crate::tables::trace_id::TraceId;

/// The number of the stack that allocated the block which starts here; 0 if the block or its stack is not known.
pub(crate) extern "C" fn site(address: *const c_void) -> u64 {
    if ENGINE.phase() != Phase::On {
        return 0;
    }
    ENGINE.table().get(address.addr()).map_or(0, |block| block.trace.0.into())
}

/// Calls `each` with the frames of a stack, the innermost first; not at all if there is no such stack.
pub(crate) fn frames(site: u64, each: &mut dyn FnMut(&SiteFrame<'_>)) {
    // The engine does not record what this allocates, mostly for the lookup of symbols.
    let _inside = Inside::deeper();
    let Some(trace) = u32::try_from(site).ok().filter(|trace| *trace <= TraceId::MAX) else { return };
    // A panic must not reach the caller, which may be another library.
    let frames = std::panic::catch_unwind(|| site_frames(TraceId(trace))).unwrap_or_default();
    for Site { function, place, line } in &frames {
        each(&SiteFrame::new(function, place, *line));
    }
}

/// A frame as a graph shows it.
struct Site {
    /// Empty if it is not known.
    function: String,
    /// The file, or the module with the offset.
    place: String,
    /// 0 if it is not known.
    line: u32,
}

/// Stands for an unknown place.
const NOWHERE: &str = "???";

/// The frames of a stack without the allocator's own, innermost first. The caller is inside the engine's guard.
#[cfg(feature = "analyze")]
fn site_frames(trace: TraceId) -> Vec<Site> {
    use crate::doors::live_frames::LiveFrames;

    let pcs: Vec<usize> = ENGINE.tree.frames(trace).collect();
    let mut live_frames = LiveFrames::known();
    if pcs.iter().any(|pc| !live_frames.frames().has(*pc)) {
        // Opening a file with symbols costs more than all lookups in it, and a caller that asks for one stack will
        // ask for those of the other blocks.
        let mut traces = rustc_hash::FxHashSet::from_iter([trace]);
        ENGINE.table().for_each(|_, block| {
            traces.insert(block.trace);
        });
        let asked = traces.into_iter().flat_map(|trace| ENGINE.tree.frames(trace)).collect();
        live_frames.look_up(asked, &Modules::now());
    }
    let known = &*live_frames.frames();
    let frames = || pcs.iter().flat_map(|pc| known.get(*pc));
    let own = frames().take_while(dmd_analyze::Frame::is_of_allocator).count();
    // If all frames are the allocator's, keep them.
    let own = if own == frames().count() { 0 } else { own };
    let site = |frame: dmd_analyze::Frame<'_>| Site {
        function: frame.function.unwrap_or_default().to_owned(),
        place: match (frame.file, frame.module, frame.offset) {
            (Some(file), ..) => file.to_owned(),
            (None, Some(module), Some(offset)) => format!("{module} +0x{offset:x}"),
            _ => NOWHERE.to_owned(),
        },
        line: frame.line.unwrap_or_default(),
    };
    frames().skip(own).map(site).collect()
}

/// The places of a stack, innermost first.
#[cfg(not(feature = "analyze"))]
fn site_frames(trace: TraceId) -> Vec<Site> {
    let modules = Modules::now();
    let place = |(node, pc)| {
        let module = modules.find(node, pc)?;
        let offset = modules.offset(module, pc)?;
        Some(format!("{} +0x{offset:x}", String::from_utf8_lossy(&modules.iter().nth(module)?.path)))
    };
    let place = |call| place(call).unwrap_or_else(|| NOWHERE.to_owned());
    ENGINE
        .tree
        .calls(trace)
        .map(|call| Site { function: String::new(), place: place(call), line: 0 })
        .collect()
}
