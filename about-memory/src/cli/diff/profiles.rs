//! The changes between two pprof profiles, stack by stack.

use std::collections::BTreeMap;
use std::io::{self, Write};

use about_memory::escape;
use dmd_analyze::program::bytes;
use memory_export::{ProfileFrame, ProfileStackId, ProfileValue, SampleLabelsId, StackProfile};
use serde::Serialize;

use super::super::Failure;
use super::super::dump_limits::DumpLimits;
use super::super::export::profile::{self, StackSource};
use super::super::input::InputArgument;

/// The text shows at most this many stacks.
const SHOWN: usize = 20;

/// A stack and its labels. A frame is a text, and the innermost frame is first.
type LabelledStack = (Vec<String>, Vec<(&'static str, String)>);

/// The first screen of a profile shows at most this many stacks.
const SHOWN_OF_ONE: usize = 10;

/// The columns that both profiles have. `bytes` and `blocks` contain the index of the column in each profile.
struct SharedColumns {
    value: ProfileValue,
    bytes: [usize; 2],
    blocks: Option<[usize; 2]>,
}

/// The amounts of a stack: bytes and blocks before and after.
#[derive(Clone, Copy, Default)]
struct StackAmounts {
    bytes: [i128; 2],
    blocks: [i128; 2],
}

impl StackAmounts {
    fn change(of: [i128; 2]) -> i128 {
        of[1] - of[0]
    }
}

#[derive(Serialize)]
struct StackChange<'a> {
    first: i128,
    second: i128,
    change: i128,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<i128>,
    labels: BTreeMap<&'static str, &'a str>,
    stack: &'a [String],
}

/// Prints the changes, the largest first.
pub(super) fn run(
    first: &InputArgument,
    second: &InputArgument,
    json: bool,
    limit: Option<usize>,
    max_bytes: u64,
) -> Result<(), Failure> {
    let limits = DumpLimits::with_max_bytes(max_bytes);
    let read = |input: &InputArgument| match profile::read(input, &limits)? {
        StackSource::Pprof(stacks) => Ok(*stacks),
        StackSource::Heap(_) => Err(Failure::File(input.name(), anyhow::anyhow!("is not a profile"))),
    };
    let (before, after) = (read(first)?, read(second)?);
    let Some(columns) = SharedColumns::shared([&before, &after]) else {
        return Err(Failure::File(
            second.name(),
            anyhow::anyhow!(
                "has no column of bytes in common with {}; compare two profiles of the same kind",
                first.name()
            ),
        ));
    };
    let mut changes: BTreeMap<LabelledStack, StackAmounts> = BTreeMap::new();
    for (time, stacks) in [&before, &after].into_iter().enumerate() {
        add(stacks, time, &columns, &mut changes);
    }
    let mut total = StackAmounts::default();
    for amounts in changes.values() {
        for time in 0..2 {
            total.bytes[time] += amounts.bytes[time];
            total.blocks[time] += amounts.blocks[time];
        }
    }
    let mut changes: Vec<(&LabelledStack, &StackAmounts)> = changes
        .iter()
        .filter(|(_, amounts)| {
            StackAmounts::change(amounts.bytes) != 0 || StackAmounts::change(amounts.blocks) != 0
        })
        .collect();
    changes.sort_by_key(|(_, amounts)| core::cmp::Reverse(StackAmounts::change(amounts.bytes).abs()));
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let written = match json {
        true => write_json(&mut out, &columns, &total, &changes, limit.unwrap_or(usize::MAX)),
        false => write_text(&mut out, &columns, &total, &changes, limit.unwrap_or(SHOWN)),
    };
    written.and_then(|()| out.flush()).map_err(Failure::Output)
}

/// Returns the stacks with the most memory, as a text.
pub(in super::super) fn largest_stacks(stacks: &StackProfile) -> String {
    let Some(columns) = SharedColumns::shared([stacks, stacks]) else {
        return "The profile has no amounts of live or allocated memory.\n".to_owned();
    };
    let mut sums: BTreeMap<LabelledStack, StackAmounts> = BTreeMap::new();
    add(stacks, 1, &columns, &mut sums);
    let whole: i128 = sums.values().map(|amounts| amounts.bytes[1]).sum();
    let mut sums: Vec<(&LabelledStack, &StackAmounts)> = sums.iter().collect();
    sums.sort_by_key(|(_, amounts)| core::cmp::Reverse(amounts.bytes[1]));
    let mut out = format!("{} {} in {} stacks\n", bytes(whole), columns.value.name(), sums.len());
    for ((stack, labels), amounts) in sums.iter().take(SHOWN_OF_ONE) {
        let share = 100.0 * amounts.bytes[1] as f64 / whole.max(1) as f64;
        out += &format!("\n{} ({share:.1}%)", bytes(amounts.bytes[1]));
        if columns.blocks.is_some() {
            out += &format!(", {} blocks", amounts.blocks[1]);
        }
        for (name, value) in labels {
            out += &format!(", {name} {}", escape(value));
        }
        out.push('\n');
        for frame in stack {
            out += &format!("    {}\n", escape(frame));
        }
    }
    if sums.len() > SHOWN_OF_ONE {
        out += &format!("\n... and {} more stacks\n", sums.len() - SHOWN_OF_ONE);
    }
    out
}

impl SharedColumns {
    /// Returns the first kind of bytes that both profiles have; `None` if they have no kind in common.
    fn shared(profiles: [&StackProfile; 2]) -> Option<Self> {
        let of_both = |value| match profiles.map(|stacks| stacks.index_of(value)) {
            [Some(first), Some(second)] => Some([first, second]),
            _ => None,
        };
        let values = [
            (ProfileValue::LiveBytes, ProfileValue::LiveBlocks),
            (ProfileValue::AllocatedBytes, ProfileValue::AllocatedBlocks),
        ];
        values
            .into_iter()
            .find_map(|(value, blocks)| Some(Self { value, bytes: of_both(value)?, blocks: of_both(blocks) }))
    }
}

fn add(
    stacks: &StackProfile,
    time: usize,
    columns: &SharedColumns,
    changes: &mut BTreeMap<LabelledStack, StackAmounts>,
) {
    let (bytes, blocks) = (columns.bytes[time], columns.blocks.map(|blocks| blocks[time]));
    let mut last: Option<((ProfileStackId, SampleLabelsId), LabelledStack)> = None;
    for sample in stacks.samples() {
        let ids = (sample.stack, sample.labels);
        let key = match last.take() {
            Some((known, key)) if known == ids => key,
            _ => {
                let frames = stacks.stack(sample.stack).iter().map(|id| text(stacks, &stacks.frame(*id)));
                let labels = stacks.labels(sample.labels);
                (frames.collect(), labels.iter().map(|(name, value)| (name, value.to_owned())).collect())
            }
        };
        let amounts = changes.entry(key.clone()).or_default();
        amounts.bytes[time] += i128::from(sample.amounts[bytes]);
        amounts.blocks[time] += blocks.map_or(0, |blocks| i128::from(sample.amounts[blocks]));
        last = Some((ids, key));
    }
}

/// Returns the text of a frame without its line number: line numbers differ between builds.
fn text(stacks: &StackProfile, frame: &ProfileFrame<'_>) -> String {
    let place = frame.file.map(|file| format!(" ({file})")).unwrap_or_default();
    match (frame.function, frame.module) {
        (Some(function), _) => format!("{function}{place}"),
        (None, Some(module)) => {
            let module = &stacks.modules()[module.index()].path;
            format!("{module} +0x{:x}", frame.offset.unwrap_or_default())
        }
        (None, None) => format!("???{place}"),
    }
}

fn write_text(
    mut out: impl Write,
    columns: &SharedColumns,
    total: &StackAmounts,
    changes: &[(&LabelledStack, &StackAmounts)],
    most: usize,
) -> io::Result<()> {
    let StackAmounts { bytes, blocks } = *total;
    writeln!(
        out,
        "{}: {} -> {} ({:+})",
        columns.value.name(),
        bytes[0],
        bytes[1],
        StackAmounts::change(bytes)
    )?;
    if columns.blocks.is_some() {
        writeln!(out, "blocks: {} -> {} ({:+})", blocks[0], blocks[1], StackAmounts::change(blocks))?;
    }
    for ((stack, labels), amounts) in changes.iter().take(most) {
        write!(out, "\n{:+} bytes", StackAmounts::change(amounts.bytes))?;
        if columns.blocks.is_some() {
            write!(out, ", {:+} blocks", StackAmounts::change(amounts.blocks))?;
        }
        for (name, value) in labels {
            write!(out, ", {name} {}", escape(value))?;
        }
        writeln!(out)?;
        for frame in stack {
            writeln!(out, "    {}", escape(frame))?;
        }
    }
    if changes.len() > most {
        let rest: i128 = changes[most..].iter().map(|(_, amounts)| StackAmounts::change(amounts.bytes)).sum();
        writeln!(out, "\n{rest:+} bytes in {} other stacks; --json shows all stacks", changes.len() - most)?;
    }
    Ok(())
}

fn write_json(
    mut out: impl Write,
    columns: &SharedColumns,
    total: &StackAmounts,
    changes: &[(&LabelledStack, &StackAmounts)],
    most: usize,
) -> io::Result<()> {
    let StackAmounts { bytes: [first, second], .. } = total;
    write!(
        out,
        "{{\n \"version\": 1,\n \"value\": \"{}\",\n \"first\": {first},\n \"second\": {second},\n \"changes\": [",
        columns.value.name()
    )?;
    let mut before = "\n  ";
    let (shown, rest) = changes.split_at(changes.len().min(most));
    for ((stack, labels), amounts) in shown {
        out.write_all(before.as_bytes())?;
        let [first, second] = amounts.bytes;
        let labels = labels.iter().map(|(name, value)| (*name, &**value)).collect();
        let (change, blocks) = (second - first, columns.blocks.map(|_| StackAmounts::change(amounts.blocks)));
        serde_json::to_writer(&mut out, &StackChange { first, second, change, blocks, labels, stack })?;
        before = ",\n  ";
    }
    let sum = |time: usize| rest.iter().map(|(_, amounts)| amounts.bytes[time]).sum::<i128>();
    let (changes, first, second) = (rest.len(), sum(0), sum(1));
    write!(out, "\n ],\n \"rest\": {{\"changes\": {changes}, \"first\": {first}, \"second\": {second}, ")?;
    write!(out, "\"change\": {}}}\n}}\n", second - first)
}
