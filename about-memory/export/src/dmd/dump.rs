//! Converts the blocks of a dump.

use std::collections::HashMap;
use std::time::Duration;

use dmd_analyze::program::FoldRules;
use dmd_analyze::{BlockEntry, Dump, DumpTime, Mode};
use rustc_hash::FxHashMap;

use super::stack_ids::DumpStackIds;
use super::stack_types::StackTypes;
use super::{ProfileError, ProfileOptions};
use crate::stack_profile::amount;
use crate::{ExportError, ProfileValue, SampleLabels, SampleLabelsId, StackProfile, StackProfileBuilder};

/// Converts the blocks of a dump with symbols, at the time that the dump [shows](Dump::shown).
///
/// # Errors
///
/// Returns an error if the bytes of equal blocks exceed 63 bits.
pub fn stacks(dump: Dump, options: &ProfileOptions) -> Result<StackProfile, ProfileError> {
    let mut builder = StackProfileBuilder::new(&values(&dump, options));
    describe(&dump, &mut builder);
    add(dump, false, options, &mut builder)?;
    Ok(builder.finish()?)
}

/// Converts the blocks of the second dump minus the blocks of the first. Amounts may be negative. If both dumps come
/// from one process, the duration is the time between them.
///
/// # Errors
///
/// Returns the same errors as [`stacks`], and an error if only one of the dumps is cumulative.
pub fn difference(first: Dump, second: Dump, options: &ProfileOptions) -> Result<StackProfile, ProfileError> {
    let is_of_all = |dump: &Dump| dump.mode() == Mode::Cumulative;
    if is_of_all(&first) != is_of_all(&second) {
        return Err(ProfileError::DifferentModes(first.mode(), second.mode()));
    }
    let mut builder = StackProfileBuilder::new(&values(&second, options));
    describe(&second, &mut builder);
    builder.facts().comment += ", minus an earlier dump";
    builder.facts().duration = between(&first, &second);
    // The main program of a difference is the main program of the later dump.
    add(second, false, options, &mut builder)?;
    add(first, true, options, &mut builder)?;
    Ok(builder.finish()?)
}

/// The time between two dumps of one process; `None` if the dumps come from different processes or have no times.
fn between(first: &Dump, second: &Dump) -> Option<Duration> {
    let start = |dump: &Dump| Some(dump.time()? as f64 - dump.statistics()?.seconds);
    let seconds = match (start(first), start(second)) {
        // Dumps have times in whole seconds.
        (Some(one), Some(other)) if (one - other).abs() < 2.0 => {
            second.statistics()?.seconds - first.statistics()?.seconds
        }
        (Some(_), Some(_)) => return None,
        // A sample has no statistics, so the dumps' times are used.
        _ => second.time()?.checked_sub(first.time()?)? as f64,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

fn values(dump: &Dump, options: &ProfileOptions) -> Vec<ProfileValue> {
    match dump.mode() {
        Mode::Cumulative => vec![ProfileValue::AllocatedBlocks, ProfileValue::AllocatedBytes],
        _ if options.both => {
            vec![ProfileValue::LiveBlocks, ProfileValue::LiveBytes, ProfileValue::LiveRequestedBytes]
        }
        _ => vec![ProfileValue::LiveBlocks, ProfileValue::LiveBytes],
    }
}

fn describe(dump: &Dump, builder: &mut StackProfileBuilder) {
    let facts = builder.facts();
    let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    let peak = dump.peak().and_then(|peak| seconds(peak.seconds()));
    let at = match dump.shown() {
        DumpTime::Peak => " at the heap's peak",
        _ => "",
    };
    facts.comment = format!("blocks{at}, recorded by DMD in the mode {}", dump.mode());
    facts.time = dump.time().map(Duration::from_secs);
    facts.peak = peak;
    facts.sample_bytes = dump.sample().map(|sample| sample.mean);
    facts.duration = match dump.shown() {
        DumpTime::Peak => peak,
        _ => dump.statistics().and_then(|statistics| seconds(statistics.seconds)),
    };
    if let Some(module) = dump.modules().first() {
        facts.program.clone_from(&module.path);
    }
}

/// Adds the blocks of a dump, or subtracts them.
fn add(
    mut dump: Dump,
    away: bool,
    options: &ProfileOptions,
    builder: &mut StackProfileBuilder,
) -> Result<(), ExportError> {
    let types = if options.types { StackTypes::new(&dump) } else { StackTypes::default() };
    if !options.all_frames {
        dump.fold(&FoldRules::new());
    }
    let stack_ids = DumpStackIds::new(&dump, true, builder);
    let mut labels = BlockLabels {
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
        let labels = labels.get(&block, builder);
        let slop = if options.requested { 0 } else { block.slop() };
        let size = i128::from(block.requested()) + i128::from(slop);
        let all = if options.requested { 0 } else { block.all_slop() };
        let all = i128::try_from(block.all_requested() + all).ok();
        amounts.clear();
        for value in &values {
            let exact = match value {
                ProfileValue::LiveRequestedBytes => i128::try_from(block.all_requested()).ok(),
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

/// The labels of blocks. Millions of blocks have only a few different labels.
struct BlockLabels<'d> {
    types: StackTypes,
    /// The number of each reporter's name. The key identifies the reporter in a block of the dump.
    reporters: FxHashMap<(u32, Option<usize>), u32>,
    numbers: HashMap<Option<&'d str>, u32>,
    known: FxHashMap<LabelsKey, SampleLabelsId>,
}

/// The key of labels: the names of both reporters; the type plus 1, or 0 without a type; and the kind. The key is small
/// because millions of blocks are looked up.
type LabelsKey = ([u32; 2], u32, u8);

impl<'d> BlockLabels<'d> {
    fn get(&mut self, block: &BlockEntry<'d>, builder: &mut StackProfileBuilder) -> SampleLabelsId {
        let Self { types, reporters, numbers, known } = self;
        let keys = block.reporter_keys();
        let reporters = [0, 1].map(|nth| {
            *reporters.entry(keys[nth]).or_insert_with(|| {
                let next = numbers.len() as u32;
                *numbers.entry(block.reporter_names()[nth]).or_insert(next)
            })
        });
        let type_name = block.stack().and_then(|stack| types.get(stack));
        let kind = block.reports().map(|reports| ["unreported", "once", "twice"][reports.min(2)]);
        let number_of_kind = block.reports().map_or(3, |reports| reports.min(2) as u8);
        let number_of_type = type_name.map_or(0, |number| number + 1);
        *known.entry((reporters, number_of_type, number_of_kind)).or_insert_with(|| {
            let type_name = type_name.map(|number| types.names[number as usize].as_str());
            builder.labels(&SampleLabels {
                kind,
                reporter: block.reporter().as_deref(),
                type_name,
                thread: None,
            })
        })
    }
}
