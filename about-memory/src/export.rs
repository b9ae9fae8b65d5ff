//! Dumps and recordings of DMD as [`Stacks`], from which the crate `memory-export` writes the formats of other tools.
//!
//! A dump has the live blocks of one time or, in cumulative mode, all blocks ever allocated. Each sample has the stack,
//! the size, and as labels whether reporters reported the blocks, which, and the type. A recording has a [`History`], and
//! a heap snapshot its nodes by the stacks that allocated them.

#[cfg(feature = "session")]
mod census;
mod counters;
mod format;
mod history;

use core::fmt;
use std::collections::HashMap;
use std::io;
use std::time::Duration;

use dmd_analyze::program::Folds;
use dmd_analyze::{AnalyzeError, At, Blocks, Dump, Mode};
use memory_export::{
    ExportError, Frame, FrameId, Labels, LabelsId, ModuleId, StackId, Stacks, StacksBuilder, Value,
};
use rustc_hash::FxHashMap;

#[cfg(feature = "session")]
pub use census::census;
pub use counters::{counters, point_times};
pub use format::{StacksFormat, write};
pub use history::{History, Window};

/// The frame of blocks whose stack was not recorded.
const NO_STACK: &str = "(no stack recorded)";

/// How a dump becomes stacks.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StacksOptions {
    /// Keep the frames that say nothing about the program: those of allocators, of Rust's library, and through which
    /// threads and `main` start. Default: no.
    pub all_frames: bool,
    /// Find the types of blocks, for formats with labels. Default: no.
    pub types: bool,
    /// Count the bytes that the program requested, and not those that it can use. Default: no.
    pub requested: bool,
    /// Count the bytes that the program requested as a value of their own,
    /// [`Value::LiveRequestedBytes`]; cumulative dumps have no such value. Default: no.
    pub both: bool,
}

impl StacksOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`all_frames`](Self::all_frames).
    #[must_use]
    pub fn all_frames(mut self, all_frames: bool) -> Self {
        self.all_frames = all_frames;
        self
    }

    /// Sets [`types`](Self::types).
    #[must_use]
    pub fn types(mut self, types: bool) -> Self {
        self.types = types;
        self
    }

    /// Sets [`requested`](Self::requested).
    #[must_use]
    pub fn requested(mut self, requested: bool) -> Self {
        self.requested = requested;
        self
    }

    /// Sets [`both`](Self::both).
    #[must_use]
    pub fn both(mut self, both: bool) -> Self {
        self.both = both;
        self
    }
}

/// Why a dump or a recording does not become stacks.
#[derive(Debug)]
#[non_exhaustive]
pub enum StacksError {
    /// Two dumps of a difference have different modes.
    DifferentModes(Mode, Mode),
    /// The format cannot say an amount, or the output fails.
    Export(ExportError),
    /// The recording cannot be read.
    Read(AnalyzeError),
    /// The nodes of a snapshot cannot be counted.
    #[cfg(feature = "session")]
    Census(heap_graph::census::CensusError),
}

impl fmt::Display for StacksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DifferentModes(first, second) => {
                write!(f, "its mode is {second}, but that of the first dump is {first}")
            }
            Self::Export(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
            #[cfg(feature = "session")]
            Self::Census(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StacksError {}

impl From<ExportError> for StacksError {
    fn from(error: ExportError) -> Self {
        Self::Export(error)
    }
}

impl From<io::Error> for StacksError {
    fn from(error: io::Error) -> Self {
        Self::Export(error.into())
    }
}

impl From<AnalyzeError> for StacksError {
    fn from(error: AnalyzeError) -> Self {
        Self::Read(error)
    }
}

/// The blocks of a dump with symbols, at the time that it [shows](Dump::shown).
///
/// # Errors
///
/// If the bytes of equal blocks exceed 63 bits.
pub fn stacks(dump: Dump, options: &StacksOptions) -> Result<Stacks, StacksError> {
    let mut builder = StacksBuilder::new(&values(&dump, options));
    describe(&dump, &mut builder);
    add(dump, false, options, &mut builder)?;
    Ok(builder.finish()?)
}

/// The blocks of the second dump minus those of the first. Amounts may be negative. The duration is the time between both,
/// if they are of one process.
///
/// # Errors
///
/// As [`stacks`], and if one of the dumps is cumulative and the other is not.
pub fn difference(first: Dump, second: Dump, options: &StacksOptions) -> Result<Stacks, StacksError> {
    let is_of_all = |dump: &Dump| dump.mode() == Mode::Cumulative;
    if is_of_all(&first) != is_of_all(&second) {
        return Err(StacksError::DifferentModes(first.mode(), second.mode()));
    }
    let mut builder = StacksBuilder::new(&values(&second, options));
    describe(&second, &mut builder);
    builder.facts().comment += ", minus an earlier dump";
    builder.facts().duration = between(&first, &second);
    // The main program of the later dump is that of the difference.
    add(second, false, options, &mut builder)?;
    add(first, true, options, &mut builder)?;
    Ok(builder.finish()?)
}

/// The time between two dumps of one process.
fn between(first: &Dump, second: &Dump) -> Option<Duration> {
    let start = |dump: &Dump| Some(dump.time()? as f64 - dump.statistics()?.seconds);
    let seconds = match (start(first), start(second)) {
        // The time of a dump is in whole seconds.
        (Some(one), Some(other)) if (one - other).abs() < 2.0 => {
            second.statistics()?.seconds - first.statistics()?.seconds
        }
        (Some(_), Some(_)) => return None,
        // A sample has no statistics.
        _ => second.time()?.checked_sub(first.time()?)? as f64,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

fn values(dump: &Dump, options: &StacksOptions) -> Vec<Value> {
    match dump.mode() {
        Mode::Cumulative => vec![Value::AllocatedBlocks, Value::AllocatedBytes],
        _ if options.both => vec![Value::LiveBlocks, Value::LiveBytes, Value::LiveRequestedBytes],
        _ => vec![Value::LiveBlocks, Value::LiveBytes],
    }
}

fn describe(dump: &Dump, builder: &mut StacksBuilder) {
    let facts = builder.facts();
    let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    let peak = dump.peak().and_then(|peak| seconds(peak.seconds()));
    let at = match dump.shown() {
        At::Peak => " at the heap's peak",
        _ => "",
    };
    facts.comment = format!("blocks{at}, recorded by DMD in the mode {}", dump.mode());
    facts.time = dump.time().map(Duration::from_secs);
    facts.peak = peak;
    facts.duration = match dump.shown() {
        At::Peak => peak,
        _ => dump.statistics().and_then(|statistics| seconds(statistics.seconds)),
    };
    if let Some(module) = dump.modules().first() {
        facts.program.clone_from(&module.path);
    }
}

/// Adds the blocks of a dump, or takes them away.
fn add(
    mut dump: Dump,
    away: bool,
    options: &StacksOptions,
    builder: &mut StacksBuilder,
) -> Result<(), ExportError> {
    let types = if options.types { Types::of(&dump) } else { Types::default() };
    if !options.all_frames {
        dump.fold(&Folds::new());
    }
    let stack_ids = StackIds::new(&dump, true, builder);
    let mut labels = OfBlocks {
        types,
        reporters: FxHashMap::default(),
        numbers: HashMap::new(),
        known: FxHashMap::default(),
    };
    builder.reserve(dump.blocks().len());
    let values = values(&dump, options);
    let mut amounts = Vec::with_capacity(values.len());
    for block in dump.blocks() {
        let stack = block.stack();
        let labels = labels.of(&block, builder);
        let slop = if options.requested { 0 } else { block.slop() };
        let size = i128::from(block.requested()) + i128::from(slop);
        let all = if options.requested { 0 } else { block.all_slop() };
        let all = i128::try_from(block.all_requested() + all).ok();
        amounts.clear();
        for value in &values {
            let exact = match value {
                Value::LiveRequestedBytes => i128::try_from(block.all_requested()).ok(),
                value if value.unit() == "bytes" => all,
                _ => Some(block.count().into()),
            };
            let exact = exact.unwrap_or(i128::MAX);
            amounts.push(amount(*value, if away { -exact } else { exact })?);
        }
        builder.sample(stack_ids.get(stack), labels, u64::try_from(size).ok(), &amounts);
    }
    Ok(())
}

/// The types of blocks by their stacks.
#[derive(Debug, Default)]
struct Types {
    names: Vec<String>,
    /// Empty if nobody asked for types.
    of_stacks: Vec<Option<u32>>,
}

impl Types {
    fn of(dump: &Dump) -> Self {
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

    fn of_stack(&self, stack: usize) -> Option<u32> {
        self.of_stacks.get(stack).copied().flatten()
    }
}

/// The labels of blocks. Few of millions of blocks have labels of their own.
struct OfBlocks<'d> {
    types: Types,
    /// The number of a name by what a block says of one of its reporters.
    reporters: FxHashMap<(u32, Option<usize>), u32>,
    numbers: HashMap<Option<&'d str>, u32>,
    known: FxHashMap<LabelsKey, LabelsId>,
}

/// The names of both reporters, one more than the type, or 0 for none, and the kind. Millions of blocks are looked up.
type LabelsKey = ([u32; 2], u32, u8);

impl<'d> OfBlocks<'d> {
    fn of(&mut self, block: &Blocks<'d>, builder: &mut StacksBuilder) -> LabelsId {
        let Self { types, reporters, numbers, known } = self;
        let keys = block.reporter_keys();
        let reporters = [0, 1].map(|nth| {
            *reporters.entry(keys[nth]).or_insert_with(|| {
                let next = numbers.len() as u32;
                *numbers.entry(block.reporter_names()[nth]).or_insert(next)
            })
        });
        let type_name = block.stack().and_then(|stack| types.of_stack(stack));
        let kind = block.reports().map(|reports| ["unreported", "once", "twice"][reports.min(2)]);
        let number_of_kind = block.reports().map_or(3, |reports| reports.min(2) as u8);
        let number_of_type = type_name.map_or(0, |number| number + 1);
        *known.entry((reporters, number_of_type, number_of_kind)).or_insert_with(|| {
            let type_name = type_name.map(|number| types.names[number as usize].as_str());
            builder.labels(&Labels { kind, reporter: block.reporter().as_deref(), type_name, thread: None })
        })
    }
}

/// The amount of a sample.
fn amount(value: Value, exact: i128) -> Result<i64, ExportError> {
    let most = i128::from(i64::MAX);
    i64::try_from(exact).map_err(|_| ExportError::TooLarge("a profile", value.name(), exact, most))
}

/// The ids of a dump's stacks.
struct StackIds {
    all: Vec<StackId>,
    /// Of blocks whose stack was not recorded.
    none: StackId,
}

impl StackIds {
    /// Adds all stacks. Without `addresses`, frames are equal if people read the same.
    fn new(dump: &Dump, addresses: bool, builder: &mut StacksBuilder) -> Self {
        let mut modules: HashMap<&str, ModuleId> = HashMap::new();
        for module in dump.modules() {
            let id = builder.module(&module.path, &module.build_id);
            modules.entry(&module.path).or_insert(id);
        }
        let frames: Vec<FrameId> = dump
            .frames()
            .map(|frame| {
                let dmd_analyze::Frame { function, file, line, column, .. } = frame;
                let read = Frame { function, file, line, column, ..Frame::default() };
                if function.is_some() && !addresses {
                    return builder.frame(&read);
                }
                let module =
                    frame.module.map(|path| *modules.entry(path).or_insert_with(|| builder.module(path, "")));
                builder.frame(&Frame {
                    system_name: frame.system_name,
                    module,
                    offset: frame.offset,
                    inlined: frame.inlined,
                    ..read
                })
            })
            .collect();
        let none = builder.frame(&Frame { function: Some(NO_STACK), ..Frame::default() });
        let none = builder.stack(&[none]);
        let mut calls = Vec::new();
        let all = dump.frame_indices().map(|stack| {
            calls.clear();
            calls.extend(stack.map(|index| frames[index]));
            if calls.is_empty() { none } else { builder.stack(&calls) }
        });
        Self { all: all.collect(), none }
    }

    fn get(&self, stack: Option<usize>) -> StackId {
        stack.map_or(self.none, |stack| self.all[stack])
    }
}
