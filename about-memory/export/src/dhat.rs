//! DHAT's JSON, version 2, for `dh_view.html` of Valgrind.
//!
//! A profile of the whole history has allocated blocks, live blocks, the blocks at the peak, the maximum of each stack,
//! the blocks' life times (`bklt`), and the time of the peak. Every other profile has one amount of blocks and bytes.
//!
//! In the viewer's tree, a stack starts at its allocation, below the owner of the blocks: the first level of the tree
//! is `unreported`, `reported once` and `reported twice`. Points with equal frames are merged, because the viewer
//! rejects duplicates.
//!
//! Source: `dhat/dh_view.js` of Valgrind 3.19.

use std::collections::BTreeMap;
use std::io::Write;

use rustc_hash::FxHashMap;

use crate::error::ExportError;
use crate::json::{JsonWriter, MOST, exact};
use crate::stack_profile::{ProfileFrameId, ProfileValue, StackProfile};

const FORMAT: &str = "DHAT";

/// The values of a profile with life times, with their names in a point.
const HISTORY: [(ProfileValue, &str); 9] = [
    (ProfileValue::AllocatedBytes, "tb"),
    (ProfileValue::AllocatedBlocks, "tbk"),
    (ProfileValue::Lifetimes, "tl"),
    (ProfileValue::OwnPeakBytes, "mb"),
    (ProfileValue::OwnPeakBlocks, "mbk"),
    (ProfileValue::PeakBytes, "gb"),
    (ProfileValue::PeakBlocks, "gbk"),
    (ProfileValue::LiveBytes, "eb"),
    (ProfileValue::LiveBlocks, "ebk"),
];

/// Writes a profile.
///
/// # Errors
///
/// Returns an error if `out` fails, if an amount is negative, or if an amount exceeds 2^53. The viewer's numbers are
/// not exact above 2^53.
pub fn write(stacks: &StackProfile, out: impl Write) -> Result<(), ExportError> {
    let facts = stacks.facts();
    let recorded = |value: ProfileValue| stacks.index_of(value);
    let has_history = HISTORY.iter().all(|(value, _)| recorded(*value).is_some());
    let (history, verb) = match (facts.duration, facts.peak) {
        (Some(end), Some(peak)) if has_history => (Some((end, peak)), "Allocated"),
        _ if recorded(ProfileValue::LiveBytes).is_some() => (None, "Live"),
        _ => (None, "Allocated"),
    };
    let columns: Vec<(usize, &str)> = match history {
        Some(_) => HISTORY.iter().filter_map(|(value, name)| Some((recorded(*value)?, *name))).collect(),
        None => {
            let first = |values: [ProfileValue; 2]| values.into_iter().find_map(recorded);
            let bytes = first([ProfileValue::LiveBytes, ProfileValue::AllocatedBytes]);
            let blocks = first([ProfileValue::LiveBlocks, ProfileValue::AllocatedBlocks]);
            let (Some(bytes), Some(blocks)) = (bytes, blocks) else {
                return Err(ExportError::NotRecorded(FORMAT, "blocks with their bytes"));
            };
            vec![(bytes, "tb"), (blocks, "tbk")]
        }
    };
    // The sum of many long life times is too large for microseconds.
    let lives = stacks.total(ProfileValue::Lifetimes).unwrap_or_default();
    // The first name is for one time unit, the second name for a million time units.
    let (unit, million, each) =
        if history.is_some() && lives > MOST { ("ms", "ks", 1000) } else { ("µs", "s", 1) };
    let amount = |column: usize, sum: i128| {
        let value = stacks.values()[column];
        let sum = if value == ProfileValue::Lifetimes { sum / each } else { sum };
        exact(FORMAT, value.name(), sum)
    };
    for (column, _) in &columns {
        amount(*column, stacks.total(stacks.values()[*column]).unwrap_or_default())?;
    }
    let mut json = JsonWriter::new(out);
    json.raw("{\"dhatFileVersion\":2,\"mode\":\"memory-export\",\"verb\":")?;
    json.string(verb)?;
    json.raw(if history.is_some() { ",\"bklt\":true" } else { ",\"bklt\":false" })?;
    json.raw(",\"bkacc\":false,\"bu\":\"byte\",\"bsu\":\"bytes\",\"bksu\":\"blocks\",\"tu\":")?;
    json.string(unit)?;
    json.raw(",\"Mtu\":")?;
    json.string(million)?;
    json.raw(",\"tuth\":10,\"cmd\":")?;
    json.string(&facts.program)?;
    json.raw(",\"pid\":")?;
    json.number(facts.pid.unwrap_or_default().into())?;
    json.raw(",\"te\":")?;
    json.number(facts.duration.unwrap_or_default().as_micros() as i128 / each)?;
    if let Some((_, peak)) = history {
        json.raw(",\"tg\":")?;
        json.number(peak.as_micros() as i128 / each)?;
    }
    let mut frames = DhatFrames::new(stacks);
    let points = points(stacks, &columns, &mut frames);
    json.raw(",\n\"pps\":")?;
    json.array(points, |json, (fs, sums)| {
        json.raw("\n{")?;
        for (sum, (column, name)) in sums.into_iter().zip(&columns) {
            json.raw("\"")?;
            json.raw(name)?;
            json.raw("\":")?;
            json.number(amount(*column, sum)?)?;
            json.raw(",")?;
        }
        json.raw("\"fs\":")?;
        json.array(fs, |json, frame| json.number(frame.into()))?;
        json.raw("}").map_err(ExportError::Write)
    })?;
    json.raw(",\n\"ftbl\":")?;
    json.array(frames.texts, |json, text| {
        json.raw("\n")?;
        json.string(&text)
    })?;
    json.raw("}\n")?;
    json.finish()?;
    Ok(())
}

/// The frames and sums of each point. No two points have equal frames.
fn points(
    stacks: &StackProfile,
    columns: &[(usize, &str)],
    frames: &mut DhatFrames<'_>,
) -> BTreeMap<Vec<u32>, Vec<i128>> {
    let mut points: BTreeMap<Vec<u32>, Vec<i128>> = BTreeMap::new();
    for owned in stacks.owned().iter() {
        let sums = columns.iter().map(|(column, _)| owned.sums[*column]);
        if sums.clone().all(|sum| sum == 0) {
            continue;
        }
        let owner = owned.owner.frames().map(|text| frames.text(text)).collect::<Vec<_>>();
        let own = stacks.stack(owned.stack).iter().map(|id| frames.frame(*id)).collect::<Vec<_>>();
        let all = points.entry([owner, own].concat()).or_insert_with(|| vec![0; columns.len()]);
        all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
    }
    points
}

/// The table of frames. Frames with equal texts are stored once.
struct DhatFrames<'a> {
    stacks: &'a StackProfile,
    texts: Vec<String>,
    by_text: FxHashMap<String, u32>,
    by_frame: FxHashMap<ProfileFrameId, u32>,
}

impl<'a> DhatFrames<'a> {
    fn new(stacks: &'a StackProfile) -> Self {
        // The viewer uses the first frame as the root.
        let texts = vec!["[root]".to_owned()];
        Self { stacks, texts, by_text: FxHashMap::default(), by_frame: FxHashMap::default() }
    }

    fn text(&mut self, text: String) -> u32 {
        if let Some(known) = self.by_text.get(&text) {
            return *known;
        }
        let next = self.texts.len() as u32;
        self.texts.push(text.clone());
        self.by_text.insert(text, next);
        next
    }

    fn frame(&mut self, id: ProfileFrameId) -> u32 {
        if let Some(known) = self.by_frame.get(&id) {
            return *known;
        }
        let frame = self.stacks.frame(id);
        let mut text = self.stacks.frame_name(&frame);
        if let Some(file) = frame.file {
            text += &format!(" ({file}");
            for number in frame.line.into_iter().chain(frame.line.and(frame.column)) {
                text += &format!(":{number}");
            }
            text.push(')');
        }
        let number = self.text(text);
        self.by_frame.insert(id, number);
        number
    }
}
