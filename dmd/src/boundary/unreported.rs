//! The unreported and the twice-reported blocks of this process, by crate, type and function.
//!
//! The blocks go to [`dmd_analyze::dark_matter`] with the site and type of each stack. This module looks up only the
//! frames up to the site, and each frame only one time in the process.

use dmd_analyze::CallFrame;
use dmd_analyze::dark_matter::{DarkMatter, DarkMatterRow, LiveBlocks, LiveStack};
use dmd_analyze::program::{FoldReason, FoldRules};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::boundary::live_frames::LiveFrames;
use crate::dump::modules::DumpModules;
use crate::engine::ENGINE;
use crate::tables::block_table::TableBlock;
use crate::tables::mark::{PathId, PathTable};
use crate::tables::trace_id::TraceId;

/// The label for code that reported a block by its address, without a path.
const NO_PATH: &str = "(no path)";

/// The values of a block on which its row depends. Blocks with the same values count together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct UnreportedKind {
    requested: usize,
    slop: usize,
    sampled: bool,
    trace: TraceId,
    reports: [Option<PathId>; 2],
}

/// The rows in order of crates, types and functions. The caller is inside the engine's guard, so that the engine does
/// not record allocations made here.
pub(crate) fn rows() -> Vec<DarkMatterRow> {
    let kinds = kinds();
    let mut dark_matter = DarkMatter::new();
    // The stacks of blocks that were reported once are not looked up: estimates need only the reports of these blocks.
    let named: FxHashSet<TraceId> = kinds
        .iter()
        .filter(|(kind, _)| kind.trace != TraceId::NONE && !is_once(kind))
        .map(|(kind, _)| kind.trace)
        .collect();
    let stacks = add_sites(named, &mut dark_matter);
    let once = dark_matter.add_stack(&CallFrame::default(), None);
    let mut paths: FxHashMap<PathId, LiveStack> = FxHashMap::default();
    for (index, (text, _)) in ENGINE.marks.paths().iter().flat_map(PathTable::iter).enumerate() {
        paths.insert(PathId(index as u32), dark_matter.add_reporter(&String::from_utf8_lossy(text)));
    }
    let no_path = dark_matter.add_reporter(NO_PATH);
    for (kind, count) in kinds {
        let mut blocks = LiveBlocks::default();
        blocks.requested = kind.requested as u64;
        blocks.slop = kind.slop as u64;
        blocks.count = count;
        blocks.sampled = kind.sampled;
        if kind.trace != TraceId::NONE {
            blocks.allocated_by = Some(stacks.get(&kind.trace).copied().unwrap_or(once));
        }
        blocks.reported_by = kind.reports.map(|path| Some(paths.get(&path?).copied().unwrap_or(no_path)));
        dark_matter.add(&blocks);
    }
    dark_matter.rows()
}

/// The kinds of blocks in this process and their counts, in an order that does not depend on hashes.
fn kinds() -> Vec<(UnreportedKind, u64)> {
    let mut kinds: FxHashMap<UnreportedKind, u64> = FxHashMap::default();
    ENGINE.table().for_each(|address, block| {
        let TableBlock { requested, slop, trace, sampled, marked } = ENGINE.counted(block);
        let reports =
            if marked { ENGINE.marks.get(address).map(|r| r.map(|report| report.path)) } else { [None; 2] };
        let sampled = sampled || ENGINE.mean() > 0;
        *kinds.entry(UnreportedKind { requested, slop, sampled, trace, reports }).or_default() +=
            ENGINE.number(block);
    });
    let mut kinds: Vec<(UnreportedKind, u64)> = kinds.into_iter().collect();
    let path = |path: Option<PathId>| path.map(|path| path.0);
    kinds.sort_unstable_by_key(|(kind, _)| {
        (kind.trace.0, kind.reports.map(path), kind.requested, kind.slop, kind.sampled)
    });
    kinds
}

fn is_once(kind: &UnreportedKind) -> bool {
    matches!(kind.reports, [Some(_), None])
}

/// The number of frames of each stack that one step looks up.
const STEP: usize = 6;

/// Adds the site and type of each stack to `dark_matter`. Returns the stacks as `dark_matter` knows them.
fn add_sites(traces: FxHashSet<TraceId>, dark_matter: &mut DarkMatter) -> FxHashMap<TraceId, LiveStack> {
    let frames = |trace: TraceId| -> Vec<usize> { ENGINE.tree().frames(trace).collect() };
    let mut open: Vec<(TraceId, Vec<usize>)> =
        traces.into_iter().map(|trace| (trace, frames(trace))).collect();
    open.sort_unstable_by_key(|(trace, _)| trace.0);
    let modules = DumpModules::now();
    let folds = FoldRules::new();
    let mut live_frames = LiveFrames::known();
    let mut found = FxHashMap::default();
    let mut start = 0;
    while !open.is_empty() {
        let end = start + STEP;
        let part = |pcs: &[usize]| pcs.iter().skip(start).take(STEP).copied().collect::<Vec<usize>>();
        live_frames.look_up(open.iter().flat_map(|(_, pcs)| part(pcs)).collect(), &modules);
        let known = &*live_frames.frames();
        open.retain(|(trace, pcs)| {
            let is_last =
                |frame: CallFrame<'_>| matches!(folds.reason(&frame), None | Some(FoldReason::Executor));
            let has_site = part(pcs).iter().flat_map(|pc| known.get(*pc)).any(is_last);
            if !has_site && end < pcs.len() {
                return true;
            }
            let frames: Vec<CallFrame<'_>> = pcs.iter().take(end).flat_map(|pc| known.get(*pc)).collect();
            found.insert(*trace, dark_matter.add_frames(&frames, &folds));
            false
        });
        start = end;
    }
    found
}
