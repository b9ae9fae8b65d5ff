//! Checks that the timed runs are also correct: no block is lost, all blocks are counted, and stacks are equal to the
//! stacks of a reference unwinder.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use dmd_format::recording::{BlockAction, ChunkKind, ChunkReader, EventDecoder, RecordingEnd};
use serde_json::Value;

use crate::program::{Program, field};

/// The counts of the counting program.
pub(crate) struct Counted {
    new: f64,
    live: f64,
}

/// The maximum number of blocks that the C library itself allocates: buffers, and a few blocks per thread. The counting
/// program does not count these blocks.
const OF_THE_C_LIBRARY: f64 = 64.0;

/// The scale of the run that checks stacks.
const SAMPLED_SCALE: f64 = 0.01;

pub(crate) fn count(folder: &Path, workload: &str, scale: f64) -> Result<Counted, Box<dyn Error>> {
    let text = Program::new(folder.join("checked")).run(workload, scale)?.text;
    Ok(Counted { new: field(&text, "new")?, live: field(&text, "live")? })
}

/// Checks that the dump of a timed run contains all live blocks.
pub(crate) fn nothing_is_lost(dump: &Path, counted: &Counted) -> Result<(), Box<dyn Error>> {
    let blocks = blocks_of(&read(dump)?)?;
    near("live blocks", blocks, counted.live)
}

/// Checks the number of new blocks in a recording: it must agree with the counting program and with the recording's
/// last chunk. Returns the average number of bytes of an event in the file.
pub(crate) fn bytes_of_an_event(file: &Path, counted: &Counted) -> Result<f64, Box<dyn Error>> {
    let mut chunks = ChunkReader::open(BufReader::new(File::open(file)?))?;
    let (mut begun, mut events, mut end) = (0_u64, 0_u64, None);
    while let Some(chunk) = chunks.next() {
        let chunk = chunk?;
        match chunk.kind() {
            Some(ChunkKind::Events) => {
                for event in EventDecoder::new(chunk.payload)? {
                    events += 1;
                    begun += u64::from(matches!(event?.what, BlockAction::Begin(_)));
                }
            }
            Some(ChunkKind::End) => end = Some(RecordingEnd::decode(chunk.payload)?),
            _ => {}
        }
    }
    let end = end.ok_or("the recording has no last chunk: the program did not end normally")?;
    if (end.lost_events, end.dropped_blocks) != (0, 0) || begun < end.allocations {
        return Err(format!(
            "the recording contains {begun} new blocks, but its last chunk contains {end:?}"
        )
        .into());
    }
    near("blocks of the recording", begun as f64, counted.new)?;
    Ok(std::fs::metadata(file)?.len() as f64 / events as f64)
}

/// Checks that the dump of a run that also keeps freed blocks contains as many blocks as the counting program counted.
pub(crate) fn all_are_recorded(
    plain: &Program,
    dump: &Path,
    workload: &str,
    scale: f64,
    counted: &Counted,
) -> Result<(), Box<dyn Error>> {
    let program = plain.with("DMD", "--mode=cumulative --stacks=full --quiet").with("PROFILERS_DUMP", dump);
    program.run(workload, scale)?;
    let blocks = blocks_of(&read(dump)?)?;
    println!("{workload} {blocks} blocks recorded, {} counted", counted.new);
    near("blocks", blocks, counted.new)
}

/// Checks that the sampled blocks have the frames that the `backtrace` crate found at their allocation.
pub(crate) fn stacks_are_the_references(
    folder: &Path,
    library: &Path,
    dump: &Path,
    workload: &str,
) -> Result<(), Box<dyn Error>> {
    let options = "--mode=scan --stacks=full --max-frames=256 --quiet";
    let program = Program::new(folder.join("checked")).preloading(library).with("DMD", options);
    let text = program.with("PROFILERS_DUMP", dump).run(workload, SAMPLED_SCALE)?.text;
    let ours = stacks(&read(dump)?)?;
    let (mut compared, mut frames) = (0, 0);
    for line in text.lines().filter_map(|line| line.strip_prefix("stack=")) {
        let (block, stack) = line.split_once(':').ok_or("no stack")?;
        let Some(ours) = ours.get(&u64::from_str_radix(block, 16)?) else {
            // The program allocated this block after the dump.
            continue;
        };
        let mut reference = vec![];
        for pc in stack.split(',') {
            // A dump contains the address of the call, so subtract 1 from each return address. Leave out the return
            // address 0 of the outermost frame.
            reference.extend(u64::from_str_radix(pc, 16)?.checked_sub(1));
        }
        // The innermost frames belong to the two unwinders and differ. From the caller of the allocator outwards, both
        // stacks must have equal frames.
        let same = ours.iter().rev().zip(reference.iter().rev()).take_while(|(ours, pc)| ours == pc).count();
        if same == 0 || same + INNERMOST < ours.len() {
            return Err(format!(
                "{workload}: block {block}: the stack is {ours:x?} instead of {reference:x?}"
            )
            .into());
        }
        compared += 1;
        frames += same;
    }
    if compared == 0 {
        return Err(format!("{workload}: no stack was compared").into());
    }
    println!(
        "{workload} {compared} stacks of {} frames equal the reference unwinder's stacks",
        frames / compared
    );
    Ok(())
}

/// The number of frames that each unwinder finds in the hook and in the function that calls it.
const INNERMOST: usize = 2;

fn near(what: &str, blocks: f64, counted: f64) -> Result<(), Box<dyn Error>> {
    if (0.0..=OF_THE_C_LIBRARY).contains(&(blocks - counted)) {
        return Ok(());
    }
    Err(format!("{blocks} {what}, but {counted} were counted").into())
}

fn read(dump: &Path) -> Result<Value, Box<dyn Error>> {
    let value: Value = serde_json::from_slice(&std::fs::read(dump)?)?;
    for dropped in ["blocks", "freedBlocks", "frames"] {
        if value["dropped"][dropped] != 0 {
            return Err(format!("dropped {dropped}: {}", value["dropped"][dropped]).into());
        }
    }
    Ok(value)
}

fn blocks_of(dump: &Value) -> Result<f64, Box<dyn Error>> {
    let blocks = dump["blockList"].as_array().ok_or("no blockList")?;
    Ok(blocks.iter().map(|block| block["num"].as_f64().unwrap_or(1.0)).sum())
}

/// The return addresses of each block, innermost first.
fn stacks(dump: &Value) -> Result<BTreeMap<u64, Vec<u64>>, Box<dyn Error>> {
    let mut biases = BTreeMap::new();
    for module in dump["modules"].as_array().ok_or("no modules")? {
        let bias = u64::from_str_radix(module["bias"].as_str().ok_or("no bias")?, 16)?;
        biases.insert(module["path"].as_str().ok_or("no path")?, bias);
    }
    let mut frames = BTreeMap::new();
    for (name, frame) in dump["frameTable"].as_object().ok_or("no frameTable")? {
        // `#00: ???[FILE +0xOFFSET]`
        let place = frame.as_str().and_then(|frame| frame.split_once('[')?.1.strip_suffix(']'));
        let (file, offset) = place
            .and_then(|place| place.split_once(" +0x"))
            .ok_or("expected a frame like `[FILE +0xOFFSET]`")?;
        let bias = biases.get(file).ok_or_else(|| format!("no module {file}"))?;
        frames.insert(name.as_str(), bias + u64::from_str_radix(offset, 16)?);
    }
    let mut stacks = BTreeMap::new();
    for block in dump["blockList"].as_array().ok_or("no blockList")? {
        let (Some(address), Some(trace)) = (block["addr"].as_str(), block["alloc"].as_str()) else {
            continue;
        };
        let trace = dump["traceTable"][trace].as_array().ok_or("no trace")?;
        let trace = trace.iter().filter_map(|name| frames.get(name.as_str()?).copied()).collect();
        stacks.insert(u64::from_str_radix(address, 16)?, trace);
    }
    Ok(stacks)
}
