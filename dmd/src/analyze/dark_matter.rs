//! What nobody reported, and what was reported twice, of this very process: by crate and function.
//!
//! A dump is made in memory and analyzed as one that was read. Only frames up to the one that is to be named
//! are looked up, each once for the process.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, TryLockError};

use rustc_hash::{FxHashMap, FxHashSet};

use super::allocators::{AllocatorFrames, split_frame};
use super::dump::{Block, Dump, Mode, Module, TraceId};
use super::measurements::Measurements;
use super::options::AnalyzeOptions;
use super::owner::module_of;
use super::records::{Analysis, NO_STACK, RecordKind};
use super::texts::Texts;
use crate::engine::ENGINE;
use crate::mark::{PathId, Paths};
use crate::modules::Modules;
use crate::symbolize::SymbolOptions;
use crate::{table, trace_tree};

/// Blocks that one function of a crate allocated.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Reported twice or more; else by nobody.
    pub(crate) twice: bool,
    pub(crate) module: String,
    pub(crate) function: String,
    /// Who reported them; of several pairs, the one that reported most.
    pub(crate) reporters: String,
    pub(crate) bytes: i128,
    pub(crate) estimated: bool,
}

/// Stands for whoever reported a block by its address, without a path.
const NO_PATH: &str = "(no path)";

/// In order of crates and functions. To be called inside the engine's guard: all that this allocates passes
/// by unrecorded.
pub(crate) fn rows() -> Vec<Row> {
    let options = AnalyzeOptions::new().max_frames(1).estimate(true).limit(usize::MAX);
    let analysis = Analysis::new(process(), &options);
    let mut rows: BTreeMap<(bool, String, String), Row> = BTreeMap::new();
    for section in &analysis.sections {
        let twice = match section.kind {
            RecordKind::Unreported => false,
            RecordKind::TwiceReported => true,
            _ => continue,
        };
        // The largest first.
        for record in &section.records {
            let frame = analysis.frames(record.alloc).next().unwrap_or(NO_STACK);
            let (module, function) = match frame {
                NO_STACK => ("(no stack)".into(), "(no stack)"),
                frame => (module_of(frame), split_frame(frame).0),
            };
            let key = (twice, module.clone().into_owned(), function.to_owned());
            let row = rows.entry(key).or_insert_with(|| Row {
                twice,
                module: module.into_owned(),
                function: function.to_owned(),
                reporters: reporters(&analysis, record.reps),
                ..Row::default()
            });
            row.bytes += record.sums.usable();
            row.estimated |= record.estimated;
        }
    }
    rows.into_values().collect()
}

fn reporters(analysis: &Analysis, reports: [super::stacks::StackId; 2]) -> String {
    let mut paths: Vec<&str> = reports.iter().filter_map(|stack| analysis.frames(*stack).next()).collect();
    paths.dedup();
    paths.join(" and ")
}

/// All that makes one block like another here.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    requested: usize,
    slop: usize,
    sampled: bool,
    trace: trace_tree::TraceId,
    reports: [Option<PathId>; 2],
}

/// The blocks of this process, with one frame for each stack, and for each report its path in place of one.
fn process() -> Dump {
    let mut kinds: FxHashMap<Kind, u64> = FxHashMap::default();
    ENGINE.table().for_each(|address, block| {
        let table::Block { requested, slop, trace, sampled, marked } = ENGINE.counted(block);
        let reports =
            if marked { ENGINE.marks.get(address).map(|r| r.map(|report| report.path)) } else { [None; 2] };
        *kinds.entry(Kind { requested, slop, sampled, trace, reports }).or_default() += 1;
    });
    // In an order that does not depend on the hashes of others.
    let mut kinds: Vec<(Kind, u64)> = kinds.into_iter().collect();
    let path = |path: Option<PathId>| path.map(|path| path.0);
    kinds.sort_unstable_by_key(|(kind, _)| {
        (kind.trace.0, kind.reports.map(path), kind.requested, kind.slop, kind.sampled)
    });

    let mut dump = empty();
    let mut traces: FxHashMap<u32, TraceId> = FxHashMap::default();
    // What is reported once is told by nothing but its reports, which is all that estimates need.
    let named: FxHashSet<u32> = kinds
        .iter()
        .filter(|(kind, _)| kind.trace != trace_tree::TraceId::NONE && !is_once(kind))
        .map(|(kind, _)| kind.trace.0)
        .collect();
    for (trace, frame) in owners(named) {
        traces.insert(trace, add_trace(&mut dump, &frame));
    }
    let once = add_trace(&mut dump, "");
    let mut paths: FxHashMap<PathId, TraceId> = FxHashMap::default();
    for (index, (text, _)) in ENGINE.marks.paths().iter().flat_map(Paths::iter).enumerate() {
        paths.insert(PathId(index as u32), add_trace(&mut dump, &String::from_utf8_lossy(text)));
    }
    let no_path = add_trace(&mut dump, NO_PATH);
    dump.blocks = kinds
        .iter()
        .map(|(kind, count)| Block {
            req: kind.requested as u64,
            slop: kind.slop as u64,
            num: *count,
            alloc: if kind.trace == trace_tree::TraceId::NONE {
                TraceId::NONE
            } else {
                traces.get(&kind.trace.0).copied().unwrap_or(once)
            },
            reps: kind.reports.map(|path| match path {
                None => TraceId::NONE,
                Some(path) => paths.get(&path).copied().unwrap_or(no_path),
            }),
            reporters: [u32::MAX; 2],
            sampled: kind.sampled,
        })
        .collect();
    dump
}

fn is_once(kind: &Kind) -> bool {
    matches!(kind.reports, [Some(_), None])
}

fn empty() -> Dump {
    Dump {
        variable: None,
        mode: Mode::DarkMatter,
        blocks: Vec::new(),
        scanned: Vec::new(),
        words: Vec::new(),
        traces: Vec::new(),
        frames: Vec::new(),
        texts: Texts::default(),
        modules: None,
        reporters: Vec::new(),
        time: None,
        measurements: Measurements::default(),
    }
}

fn add_trace(dump: &mut Dump, frame: &str) -> TraceId {
    let id = TraceId(dump.traces.len() as u32);
    let start = dump.frames.len() as u32;
    let frame = dump.texts.add(frame);
    dump.frames.push(frame);
    dump.traces.push(start..start + 1);
    id
}

/// So many frames of each stack are looked up at a time.
const STEP: usize = 6;

/// Of each stack the innermost frame that is no allocator's.
fn owners(traces: FxHashSet<u32>) -> Vec<(u32, String)> {
    let frames = |trace: &u32| -> Vec<usize> { ENGINE.tree.frames(trace_tree::TraceId(*trace)).collect() };
    let mut open: Vec<(u32, Vec<usize>)> = traces.iter().map(|trace| (*trace, frames(trace))).collect();
    open.sort_unstable_by_key(|(trace, _)| *trace);
    let modules = Modules::now();
    let mut names = names();
    let mut found = Vec::with_capacity(open.len());
    let mut start = 0;
    while !open.is_empty() {
        let part = |frames: &[usize]| frames.iter().skip(start).take(STEP).copied().collect::<Vec<usize>>();
        let asked: FxHashSet<usize> = open.iter().flat_map(|(_, frames)| part(frames)).collect();
        look_up(&mut names, asked, &modules);
        open.retain(|(trace, frames)| {
            let texts = |pcs: &[usize]| -> Vec<&str> {
                pcs.iter().filter_map(|pc| names.get(pc)).flatten().map(|name| &**name).collect()
            };
            let asked = texts(&part(frames));
            let owner = asked.iter().find(|text| !AllocatorFrames::CAndRust.has(text)).copied();
            let ends = start + STEP >= frames.len();
            let innermost = || texts(frames.get(..1).unwrap_or_default()).first().copied().unwrap_or("???");
            match owner.or_else(|| ends.then(innermost)) {
                Some(owner) => found.push((*trace, owner.to_owned())),
                None => return true,
            }
            false
        });
        start += STEP;
    }
    found
}

/// The texts of a return address, those of inlined calls first.
pub(super) type Names = FxHashMap<usize, Box<[Box<str>]>>;

/// Of all that have been looked up so far. A library that was unloaded and has another in its place is taken
/// for what it was.
static NAMES: Mutex<Names> = Mutex::new(FxHashMap::with_hasher(rustc_hash::FxBuildHasher));

/// [`NAMES`], or none while somebody else has them, who after a fork may not be there any more.
pub(super) fn names() -> impl DerefMut<Target = Names> {
    match NAMES.try_lock() {
        Ok(names) => OurNames::Shared(names),
        Err(TryLockError::Poisoned(names)) => OurNames::Shared(names.into_inner()),
        Err(TryLockError::WouldBlock) => OurNames::New(Names::default()),
    }
}

enum OurNames {
    Shared(MutexGuard<'static, Names>),
    New(Names),
}

impl Deref for OurNames {
    type Target = Names;

    fn deref(&self) -> &Names {
        match self {
            Self::Shared(names) => names,
            Self::New(names) => names,
        }
    }
}

impl DerefMut for OurNames {
    fn deref_mut(&mut self) -> &mut Names {
        match self {
            Self::Shared(names) => names,
            Self::New(names) => names,
        }
    }
}

pub(super) fn look_up(names: &mut Names, asked: FxHashSet<usize>, modules: &Modules) {
    let mut asked: Vec<usize> = asked.into_iter().filter(|pc| !names.contains_key(pc)).collect();
    if asked.is_empty() {
        return;
    }
    asked.sort_unstable();
    let mut dump = empty();
    let module = |module: &crate::modules::Module| Module {
        path: String::from_utf8_lossy(&module.path).into_owned(),
        build_id: module.build_id.clone(),
    };
    dump.modules = Some(modules.iter().map(module).collect());
    for pc in &asked {
        // Whatever was last at this place.
        let module = modules.find(trace_tree::TraceId(u32::MAX), *pc);
        add_trace(&mut dump, &modules.describe(module, *pc));
    }
    // On this thread only, which the engine's guard is for.
    let options = SymbolOptions { threads: 1, ..SymbolOptions::new() };
    dump.symbolize(&options);
    for (index, pc) in asked.into_iter().enumerate() {
        let texts = dump.trace(TraceId(index as u32)).iter().map(|frame| dump.texts.get(*frame).into());
        names.insert(pc, texts.collect());
    }
}
