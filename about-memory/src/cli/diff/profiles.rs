//! What changed between two pprof profiles, stack by stack.

use std::collections::BTreeMap;
use std::io::{self, Write};

use about_memory::escape;
use memory_export::{Frame, LabelsId, StackId, Stacks, Value};
use serde::Serialize;

use super::super::Failure;
use super::super::dump_limits::DumpLimits;
use super::super::export::profile::{self, Profile};
use super::super::input::Input;

/// The most stacks that the text shows.
const SHOWN: usize = 20;

/// A stack with its labels, as a text of each frame, the innermost first.
type Key = (Vec<String>, Vec<(&'static str, String)>);

/// The amounts of a stack: bytes and blocks before and after.
#[derive(Clone, Copy, Default)]
struct Amounts {
    bytes: [i128; 2],
    blocks: [i128; 2],
}

impl Amounts {
    fn change(of: [i128; 2]) -> i128 {
        of[1] - of[0]
    }
}

#[derive(Serialize)]
struct Change<'a> {
    first: i128,
    second: i128,
    change: i128,
    blocks: i128,
    labels: BTreeMap<&'static str, &'a str>,
    stack: &'a [String],
}

/// Prints the changes, the largest first.
pub(super) fn run(first: &Input, second: &Input, json: bool, max_bytes: u64) -> Result<(), Failure> {
    let limits = DumpLimits::of_bytes(max_bytes);
    let read = |input: &Input| match profile::read(input, &limits)? {
        Profile::Pprof(stacks) => Ok(*stacks),
        Profile::Heap(_) => Err(Failure::Usage(format!(
            "{}: the other file is a pprof profile, and this one is a dump; compare two of a kind",
            input.name()
        ))),
    };
    let (before, after) = (read(first)?, read(second)?);
    let [before_values, after_values] = [&before, &after].map(columns);
    let of_both = before_values.zip(after_values).filter(|(a, b)| a.0 == b.0);
    let Some(((value, ..), _)) = of_both else {
        return Err(Failure::File(
            second.name(),
            anyhow::anyhow!("has no amounts of bytes that {} has, too", first.name()),
        ));
    };
    let mut changes: BTreeMap<Key, Amounts> = BTreeMap::new();
    for (time, stacks) in [&before, &after].into_iter().enumerate() {
        add(stacks, time, &mut changes);
    }
    let mut total = Amounts::default();
    for amounts in changes.values() {
        for time in 0..2 {
            total.bytes[time] += amounts.bytes[time];
            total.blocks[time] += amounts.blocks[time];
        }
    }
    let mut changes: Vec<(&Key, &Amounts)> = changes
        .iter()
        .filter(|(_, amounts)| Amounts::change(amounts.bytes) != 0 || Amounts::change(amounts.blocks) != 0)
        .collect();
    changes.sort_by_key(|(_, amounts)| core::cmp::Reverse(Amounts::change(amounts.bytes).abs()));
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let written = match json {
        true => write_json(&mut out, value, &total, &changes),
        false => write_text(&mut out, value, &total, &changes),
    };
    written.and_then(|()| out.flush()).map_err(Failure::Output)
}

/// The bytes that a profile is about, with the places of their amounts and of those of the blocks.
fn columns(stacks: &Stacks) -> Option<(Value, usize, Option<usize>)> {
    let values = [(Value::LiveBytes, Value::LiveBlocks), (Value::AllocatedBytes, Value::AllocatedBlocks)];
    values
        .into_iter()
        .find_map(|(bytes, blocks)| Some((bytes, stacks.index_of(bytes)?, stacks.index_of(blocks))))
}

fn add(stacks: &Stacks, time: usize, changes: &mut BTreeMap<Key, Amounts>) {
    let Some((_, bytes, blocks)) = columns(stacks) else { return };
    let mut last: Option<((StackId, LabelsId), Key)> = None;
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

/// A frame without its line, which moves from build to build.
fn text(stacks: &Stacks, frame: &Frame<'_>) -> String {
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
    value: Value,
    total: &Amounts,
    changes: &[(&Key, &Amounts)],
) -> io::Result<()> {
    let Amounts { bytes, blocks } = *total;
    writeln!(out, "{}: {} -> {} ({:+})", value.name(), bytes[0], bytes[1], Amounts::change(bytes))?;
    writeln!(out, "blocks: {} -> {} ({:+})", blocks[0], blocks[1], Amounts::change(blocks))?;
    for ((stack, labels), amounts) in changes.iter().take(SHOWN) {
        let (bytes, blocks) = (Amounts::change(amounts.bytes), Amounts::change(amounts.blocks));
        write!(out, "\n{bytes:+} bytes, {blocks:+} blocks")?;
        for (name, value) in labels {
            write!(out, ", {name} {}", escape(value))?;
        }
        writeln!(out)?;
        for frame in stack {
            writeln!(out, "    {}", escape(frame))?;
        }
    }
    if changes.len() > SHOWN {
        let rest: i128 = changes[SHOWN..].iter().map(|(_, amounts)| Amounts::change(amounts.bytes)).sum();
        writeln!(out, "\n{rest:+} bytes in {} other stacks; --json shows all", changes.len() - SHOWN)?;
    }
    Ok(())
}

fn write_json(
    mut out: impl Write,
    value: Value,
    total: &Amounts,
    changes: &[(&Key, &Amounts)],
) -> io::Result<()> {
    let Amounts { bytes: [first, second], .. } = total;
    write!(
        out,
        "{{\n \"value\": \"{}\",\n \"first\": {first},\n \"second\": {second},\n \"changes\": [",
        value.name()
    )?;
    let mut before = "\n  ";
    for ((stack, labels), amounts) in changes {
        out.write_all(before.as_bytes())?;
        let [first, second] = amounts.bytes;
        let labels = labels.iter().map(|(name, value)| (*name, &**value)).collect();
        let (change, blocks) = (second - first, Amounts::change(amounts.blocks));
        serde_json::to_writer(&mut out, &Change { first, second, change, blocks, labels, stack })?;
        before = ",\n  ";
    }
    out.write_all(b"\n ]\n}\n")
}
