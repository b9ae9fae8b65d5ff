//! The Firefox Profiler's processed profile, version 55, for profiler.firefox.com and `samply load`.
//!
//! All samples are on one thread. Their weight is bytes, so that all trees and graphs show bytes. The table of native
//! allocations has the same stacks. The memory track has the sum or, for a history, the live bytes over time. Amounts
//! of a difference may be negative.
//!
//! Source: `docs-developer/processed-profile-format.md` and `src/types/profile.js` of firefox-devtools/profiler.

use std::io::{self, Write};
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::error::ExportError;
use crate::json::{JsonWriter, MOST};
use crate::stack_profile::{
    ProfileEvent, ProfileFrame, ProfileFrameId, ProfileStackId, ProfileValue, StackProfile,
};

const FORMAT: &str = "the Firefox Profiler";

/// The maximum number of points of the memory track. A screen cannot show more.
const POINTS: usize = 10_000;

/// The tables of a thread.
struct ProfileTables<'a> {
    stacks: &'a StackProfile,
    texts: Vec<String>,
    by_text: FxHashMap<String, usize>,
    /// The index of the name and of the file of each function.
    functions: Vec<(usize, Option<usize>)>,
    by_function: FxHashMap<(usize, Option<usize>), usize>,
    /// The function, the line and the column of each frame.
    frames: Vec<(usize, Option<u32>, Option<u32>)>,
    by_frame: FxHashMap<(usize, Option<u32>, Option<u32>), usize>,
    of_frames: Vec<Option<usize>>,
    /// The caller and the frame of each node.
    nodes: Vec<(Option<usize>, usize)>,
    by_node: FxHashMap<(Option<usize>, usize), usize>,
}

/// The index of an element. Adds a new element.
fn index<T: Copy + Eq + core::hash::Hash>(
    all: &mut Vec<T>,
    known: &mut FxHashMap<T, usize>,
    new: T,
) -> usize {
    *known.entry(new).or_insert_with(|| {
        all.push(new);
        all.len() - 1
    })
}

impl<'a> ProfileTables<'a> {
    fn new(stacks: &'a StackProfile) -> Self {
        Self {
            stacks,
            texts: Vec::new(),
            by_text: FxHashMap::default(),
            functions: Vec::new(),
            by_function: FxHashMap::default(),
            frames: Vec::new(),
            by_frame: FxHashMap::default(),
            of_frames: vec![None; stacks.frame_count()],
            nodes: Vec::new(),
            by_node: FxHashMap::default(),
        }
    }

    fn text(&mut self, text: &str) -> usize {
        if let Some(known) = self.by_text.get(text) {
            return *known;
        }
        self.texts.push(text.to_owned());
        self.by_text.insert(text.to_owned(), self.texts.len() - 1);
        self.texts.len() - 1
    }

    fn named(&mut self, name: &str, file: Option<&str>, line: Option<u32>, column: Option<u32>) -> usize {
        let function = (self.text(name), file.map(|file| self.text(file)));
        let function = index(&mut self.functions, &mut self.by_function, function);
        index(&mut self.frames, &mut self.by_frame, (function, line, column))
    }

    fn frame(&mut self, id: ProfileFrameId) -> usize {
        if let Some(known) = self.of_frames[id.0 as usize] {
            return known;
        }
        let stacks = self.stacks;
        let frame @ ProfileFrame { file, line, column, .. } = stacks.frame(id);
        let number = self.named(&stacks.frame_name(&frame), file, line, line.and(column));
        self.of_frames[id.0 as usize] = Some(number);
        number
    }

    /// The node of a stack, below the frames of its owner.
    fn node(&mut self, owner: impl Iterator<Item = String>, stack: ProfileStackId) -> Option<usize> {
        let mut node = None;
        for name in owner {
            let frame = self.named(&name, None, None, None);
            node = Some(index(&mut self.nodes, &mut self.by_node, (node, frame)));
        }
        let stacks = self.stacks;
        for id in stacks.stack(stack).iter().rev() {
            let frame = self.frame(*id);
            node = Some(index(&mut self.nodes, &mut self.by_node, (node, frame)));
        }
        node
    }
}

/// Writes a profile of live bytes or, if they were not recorded, of allocated bytes. The memory track shows the events
/// of a history, if there is one.
///
/// # Errors
///
/// Returns an error if `out` fails, or if a sum exceeds 2^53. The client's numbers are not exact above 2^53.
pub fn write(
    stacks: &StackProfile,
    history: impl IntoIterator<Item = ProfileEvent>,
    out: impl Write,
) -> Result<(), ExportError> {
    let values = [ProfileValue::LiveBytes, ProfileValue::AllocatedBytes];
    let Some((value, column)) = values.into_iter().find_map(|value| Some((value, stacks.index_of(value)?)))
    else {
        return Err(ExportError::NotRecorded(FORMAT, "bytes"));
    };
    let mut tables = ProfileTables::new(stacks);
    let mut samples: Vec<(Option<usize>, i128)> = Vec::new();
    let mut magnitude = 0_i128;
    for owned in stacks.owned().iter() {
        let weight = owned.sums[column];
        if weight != 0 {
            magnitude += weight.abs();
            samples.push((tables.node(owned.owner.frames(), owned.stack), weight));
        }
    }
    if magnitude > MOST {
        return Err(ExportError::TooLarge(FORMAT, value.name(), magnitude, MOST));
    }
    let facts = stacks.facts();
    let end = facts.duration.unwrap_or_default().max(Duration::from_millis(1));
    let mut points = points(history, end);
    if points.is_empty() {
        points.push((Duration::ZERO, 0));
        points.push((end, samples.iter().map(|(_, weight)| weight).sum()));
    }
    let mut json = JsonWriter::new(out);
    let start = facts.time.unwrap_or_default().saturating_sub(end).as_millis();
    json.raw(&format!(
        "{{\"meta\":{{\"categories\":[{{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}}],\
         \"debug\":false,\"extensions\":{{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]}},\"interval\":1,\
         \"preprocessedProfileVersion\":55,\"processType\":0,\"sampleUnits\":{{\"time\":\"ms\",\
         \"eventDelay\":\"ms\",\"threadCPUDelta\":\"µs\"}},\"startTime\":{start},\"symbolicated\":true,\
         \"pausedRanges\":[],\"version\":24,\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,\
         \"markerSchema\":[],\"product\":"
    ))?;
    let program = if facts.program.is_empty() { "unknown" } else { &facts.program };
    json.string(program)?;
    json.raw("},\n\"libs\":[],\"pages\":[],\"profilerOverhead\":[],\n\"threads\":[{\"name\":")?;
    json.string(program)?;
    json.raw(",\"processName\":")?;
    json.string(program)?;
    let pid = facts.pid.unwrap_or_default();
    json.raw(&format!(
        ",\"isMainThread\":true,\"pid\":\"{pid}\",\"tid\":{pid},\"processType\":\"default\",\
         \"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,\
         \"pausedRanges\":[],\"showMarkersInTimeline\":false,\n\"markers\":{{\"length\":0,\"category\":[],\
         \"data\":[],\"endTime\":[],\"name\":[],\"phase\":[],\"startTime\":[]}},\n\"nativeSymbols\":{{\
         \"length\":0,\"address\":[],\"functionSize\":[],\"libIndex\":[],\"name\":[]}},\n\"resourceTable\":{{\
         \"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]}}"
    ))?;
    write_tables(&tables, &mut json)?;
    // The samples have no times. They are spread evenly, because the client shows nothing for a range of length 0.
    let step = end.as_secs_f64() * 1000.0 / (samples.len().max(1) as f64);
    for (name, of_samples) in [("samples", true), ("nativeAllocations", false)] {
        json.raw(&format!(
            ",\n\"{name}\":{{\"length\":{},\"weightType\":\"bytes\",\"stack\":",
            samples.len()
        ))?;
        json.array(&samples, |json, (node, _)| optional(json, node.map(|node| node as i128)))?;
        json.raw(",\"weight\":")?;
        json.array(&samples, |json, (_, weight)| json.number(*weight))?;
        if of_samples {
            json.raw(",\"timeDeltas\":")?;
            json.array(0..samples.len(), |json, at| json.raw(&if at == 0 { 0.0 } else { step }.to_string()))?;
            json.raw(",\"threadCPUDelta\":")?;
            json.array(&samples, |json, _| json.raw("0"))?;
        } else {
            json.raw(",\"time\":")?;
            json.array(0..samples.len(), |json, at| json.raw(&(at as f64 * step).to_string()))?;
        }
        json.raw("}")?;
    }
    json.raw("}],\n\"counters\":[{\"name\":\"malloc\",\"category\":\"Memory\",\"description\":")?;
    json.string(value.name())?;
    json.raw(&format!(
        ",\"mainThreadIndex\":0,\"pid\":\"{pid}\",\"samples\":{{\"length\":{},\"count\":",
        points.len()
    ))?;
    let deltas = points.iter().scan(0, |last, (_, bytes)| Some(bytes - core::mem::replace(last, *bytes)));
    json.array(deltas, JsonWriter::number)?;
    json.raw(",\"number\":")?;
    json.array(&points, |json, _| json.raw("1"))?;
    json.raw(",\"timeDeltas\":")?;
    let deltas =
        points.iter().scan(Duration::ZERO, |last, (time, _)| Some(*time - core::mem::replace(last, *time)));
    json.array(deltas, |json, time| json.raw(&(time.as_secs_f64() * 1000.0).to_string()))?;
    json.raw("}}]}\n")?;
    json.finish()?;
    Ok(())
}

/// The live bytes over time: one point for each step, at the step's last event.
fn points(history: impl IntoIterator<Item = ProfileEvent>, end: Duration) -> Vec<(Duration, i128)> {
    let step = end / POINTS as u32;
    let mut points: Vec<(Duration, i128)> = Vec::new();
    let mut live = 0;
    let mut next = Duration::ZERO;
    for event in history {
        live += if event.is_free { -i128::from(event.size) } else { i128::from(event.size) };
        let last = points.last().map_or(Duration::ZERO, |(time, _)| *time);
        match points.last_mut().filter(|_| event.time < next) {
            Some(point) => *point = (event.time.max(last), live),
            None => {
                points.push((event.time.max(last), live));
                next = event.time + step;
            }
        }
    }
    points
}

fn optional<W: Write>(json: &mut JsonWriter<W>, number: Option<i128>) -> io::Result<()> {
    match number {
        Some(number) => json.number(number),
        None => json.raw("null"),
    }
}

fn write_tables<W: Write>(tables: &ProfileTables<'_>, json: &mut JsonWriter<W>) -> io::Result<()> {
    let ProfileTables { texts, functions, frames, nodes, .. } = tables;
    json.raw(&format!(",\n\"frameTable\":{{\"length\":{},\"func\":", frames.len()))?;
    json.array(frames, |json, (function, ..)| json.number(*function as i128))?;
    json.raw(",\"line\":")?;
    json.array(frames, |json, (_, line, _)| optional(json, line.map(i128::from)))?;
    json.raw(",\"column\":")?;
    json.array(frames, |json, (.., column)| optional(json, column.map(i128::from)))?;
    for (name, same) in [
        ("address", "-1"),
        ("inlineDepth", "0"),
        ("category", "0"),
        ("subcategory", "0"),
        ("nativeSymbol", "null"),
        ("innerWindowID", "0"),
    ] {
        json.raw(&format!(",\"{name}\":"))?;
        json.array(frames, |json, _| json.raw(same))?;
    }
    json.raw(&format!("}},\n\"funcTable\":{{\"length\":{},\"name\":", functions.len()))?;
    json.array(functions, |json, (name, _)| json.number(*name as i128))?;
    json.raw(",\"fileName\":")?;
    json.array(functions, |json, (_, file)| optional(json, file.map(|file| file as i128)))?;
    for (name, same) in [
        ("isJS", "false"),
        ("relevantForJS", "false"),
        ("resource", "-1"),
        ("lineNumber", "null"),
        ("columnNumber", "null"),
    ] {
        json.raw(&format!(",\"{name}\":"))?;
        json.array(functions, |json, _| json.raw(same))?;
    }
    json.raw(&format!("}},\n\"stackTable\":{{\"length\":{},\"prefix\":", nodes.len()))?;
    json.array(nodes, |json, (caller, _)| optional(json, caller.map(|caller| caller as i128)))?;
    json.raw(",\"frame\":")?;
    json.array(nodes, |json, (_, frame)| json.number(*frame as i128))?;
    json.raw("},\n\"stringArray\":")?;
    json.array(texts, |json, text| json.string(text))
}
