//! The stacks that allocated the blocks of this process, for a graph of these blocks.

use core::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use memory_reporter::engine_abi::{BlockRow, FrameRow};
#[cfg(feature = "analyze")]
use rustc_hash::FxHashSet;

#[cfg(feature = "analyze")]
use crate::boundary::live_frames::LiveFrames;
use crate::dump::modules::DumpModules;
use crate::engine::ENGINE;
use crate::system::slot::Inside;
use crate::tables::block_table::FoundBlock;
use crate::tables::trace_id::TraceId;

/// The number of the stack that allocated the block which starts at this address; 0 if the block or its stack is not
/// known.
pub(crate) extern "C" fn site(address: *const c_void) -> u64 {
    if !ENGINE.records() {
        return 0;
    }
    ENGINE.table().get(address.addr()).map_or(0, |block| block.trace.0.into())
}

/// Like [`site`], for the block that contains the address.
pub(crate) extern "C" fn enclosing_site(address: *const c_void) -> u64 {
    if !ENGINE.records() {
        return 0;
    }
    match ENGINE.table().find(address.addr()) {
        FoundBlock::Start(block) | FoundBlock::Inside(_, block) => block.trace.0.into(),
        FoundBlock::Freed | FoundBlock::Nothing => 0,
    }
}

/// Calls `each` with every live block.
pub(crate) fn live_blocks(each: &mut dyn FnMut(&BlockRow)) {
    if !ENGINE.records() {
        return;
    }
    // The engine does not record allocations made here.
    let _inside = Inside::deeper();
    // A panic must not reach the caller, which may be another library. After a panic, the remaining blocks are lost.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // The caller may look up a block's stack in the table, so the table is not in use while `each` runs.
        let mut rows = Vec::new();
        ENGINE.table().for_each(|address, block| {
            let counted = ENGINE.counted(block);
            rows.push(BlockRow {
                address,
                requested: counted.requested as u64,
                usable: counted.usable() as u64,
                site: counted.trace.0.into(),
                tick: 0,
                nanoseconds: 0,
            });
        });
        rows.iter().for_each(each);
    }));
}

/// Calls `each` with the Rust type of the blocks that a stack allocated, if the functions of the stack show the type.
#[cfg(feature = "analyze")]
pub(crate) fn type_name(site: u64, each: &mut dyn FnMut(&str)) {
    let _inside = Inside::deeper();
    let Some(trace) = u32::try_from(site).ok().filter(|trace| *trace <= TraceId::MAX) else { return };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        with_frames(TraceId(trace), |frames| {
            if let Some(name) = dmd_analyze::TypeVerdict::from_stack(frames).type_name() {
                each(&name);
            }
        });
    }));
}

/// Does nothing: types need symbols.
#[cfg(not(feature = "analyze"))]
pub(crate) fn type_name(_: u64, _: &mut dyn FnMut(&str)) {}

/// Calls `each` with the frames of a stack, the innermost first. Does nothing if the stack is unknown.
pub(crate) fn frames(site: u64, each: &mut dyn FnMut(&FrameRow<'_>)) {
    // The engine does not record allocations made here; most of them are for the lookup of symbols.
    let _inside = Inside::deeper();
    let Some(trace) = u32::try_from(site).ok().filter(|trace| *trace <= TraceId::MAX) else { return };
    // A panic must not reach the caller, which may be another library. After a panic, the remaining frames are lost.
    let _ = catch_unwind(AssertUnwindSafe(|| for_each_frame(TraceId(trace), each)));
}

/// Like [`frames`], without symbols.
pub(crate) fn places(site: u64, each: &mut dyn FnMut(&FrameRow<'_>)) {
    let _inside = Inside::deeper();
    let Some(trace) = u32::try_from(site).ok().filter(|trace| *trace <= TraceId::MAX) else { return };
    let _ = catch_unwind(AssertUnwindSafe(|| for_each_place(TraceId(trace), each)));
}

/// Calls `each` with the frames of a stack, innermost first, without the allocator's own frames. The caller is inside
/// the engine's guard.
#[cfg(feature = "analyze")]
fn for_each_frame(trace: TraceId, each: &mut dyn FnMut(&FrameRow<'_>)) {
    with_frames(trace, |frames| {
        let own = frames.iter().take_while(|frame| frame.is_of_allocator()).count();
        // If all frames belong to the allocator, keep all of them.
        let own = if own == frames.len() { 0 } else { own };
        for frame in &frames[own..] {
            let function = frame.function.unwrap_or_default();
            each(&match (frame.file, frame.module, frame.offset) {
                (None, Some(module), Some(offset)) => FrameRow::in_module(function, module, offset),
                (file, ..) => {
                    FrameRow::in_file(function, file.unwrap_or_default(), frame.line.unwrap_or_default())
                        .at_column(frame.column.unwrap_or_default())
                }
            });
        }
    });
}

/// Looks up the frames of many stacks at once. The caller is inside the engine's guard.
#[cfg(feature = "analyze")]
pub(crate) fn look_up(traces: impl Iterator<Item = TraceId>) {
    let traces: FxHashSet<TraceId> = traces.collect();
    let mut live_frames = LiveFrames::known();
    let known = live_frames.frames();
    let pcs = traces.into_iter().flat_map(|trace| ENGINE.tree().frames(trace));
    let asked: FxHashSet<usize> = pcs.filter(|pc| !known.has(*pc)).collect();
    if !asked.is_empty() {
        live_frames.look_up(asked, &DumpModules::now());
    }
}

/// Does nothing: a lookup needs symbols.
#[cfg(not(feature = "analyze"))]
pub(crate) fn look_up(_: impl Iterator<Item = TraceId>) {}

/// Calls `each` with all frames of a stack, innermost first. The caller is inside the engine's guard.
#[cfg(feature = "analyze")]
fn with_frames(trace: TraceId, each: impl FnOnce(&[dmd_analyze::CallFrame<'_>])) {
    let pcs: Vec<usize> = ENGINE.tree().frames(trace).collect();
    let mut live_frames = LiveFrames::known();
    if pcs.iter().any(|pc| !live_frames.frames().has(*pc)) {
        // Opening a file with symbols costs more than all lookups in it. A caller that requests one stack will also
        // request the stacks of the other blocks.
        let mut traces = FxHashSet::from_iter([trace]);
        ENGINE.table().for_each(|_, block| {
            traces.insert(block.trace);
        });
        let asked = traces.into_iter().flat_map(|trace| ENGINE.tree().frames(trace)).collect();
        live_frames.look_up(asked, &DumpModules::now());
    }
    let known = &*live_frames.frames();
    let frames: Vec<_> = pcs.iter().flat_map(|pc| known.get(*pc)).collect();
    each(&frames);
}

#[cfg(not(feature = "analyze"))]
use for_each_place as for_each_frame;

/// Calls `each` with the module and offset of each call of a stack, innermost first. The caller is inside the engine's
/// guard.
fn for_each_place(trace: TraceId, each: &mut dyn FnMut(&FrameRow<'_>)) {
    let modules = DumpModules::now();
    for (node, pc) in ENGINE.tree().calls(trace) {
        let place = modules.find(node, pc).and_then(|module| {
            let offset = modules.offset(module, pc)?;
            Some((String::from_utf8_lossy(&modules.iter().nth(module)?.path), offset))
        });
        each(&match &place {
            Some((path, offset)) => FrameRow::in_module("", path, *offset),
            None => FrameRow::in_file("", "", 0),
        });
    }
}
