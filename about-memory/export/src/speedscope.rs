//! speedscope's JSON, for speedscope.app and its offline page.
//!
//! Each combination of a value and a kind of blocks is a profile; the user selects it at the top. A difference has two
//! profiles for each combination, `grown` and `shrunk`, because the format has no negative weights. Small stacks are
//! merged into one stack `(N small)`, because speedscope cannot open files of gigabytes. Source:
//! `src/lib/file-format-spec.ts` of jlfwong/speedscope 1.25.0.

use std::io::Write;

use rustc_hash::FxHashMap;

use crate::error::ExportError;
use crate::json::{JsonWriter, exact};
use crate::stack_profile::{
    OwnerSums, ProfileFrame, ProfileFrameId, ProfileStackId, ProfileValue, StackProfile,
};

const FORMAT: &str = "speedscope";

/// Options for writing a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpeedscopeOptions {
    pub(crate) small: u64,
}

impl Default for SpeedscopeOptions {
    fn default() -> Self {
        Self { small: 100_000 }
    }
}

impl SpeedscopeOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Merges stacks whose amount is less than the sum of a profile divided by this number. 0 keeps all stacks.
    /// Default: 100,000.
    #[must_use]
    pub fn small(mut self, small: u64) -> Self {
        self.small = small;
        self
    }
}

/// One profile of the file: a value for blocks of one kind.
struct SpeedscopeProfile<'a> {
    value: ProfileValue,
    kind: Option<&'a str>,
    /// 1, or -1 for the profile of stacks that shrank.
    sign: i128,
    is_difference: bool,
    sum: i128,
    /// The stacks that are not small: their indices and weights.
    shown: Vec<(u32, i128)>,
    /// The number of small stacks, and their sum.
    small: (usize, i128),
}

impl SpeedscopeProfile<'_> {
    fn name(&self) -> String {
        let change = match (self.is_difference, self.sign) {
            (false, _) => "",
            (true, 1) => ", grown",
            (true, _) => ", shrunk",
        };
        let kind = self.kind.map(|kind| match kind {
            "once" | "twice" => format!(", reported {kind}"),
            kind => format!(", {kind}"),
        });
        format!("{}{}{change}", self.value.name(), kind.unwrap_or_default())
    }
}

/// Writes profiles.
///
/// # Errors
///
/// Returns an error if `out` fails, or if the sum of a profile exceeds 2^53. The client's numbers are not exact above
/// 2^53.
pub fn write(stacks: &StackProfile, options: &SpeedscopeOptions, out: impl Write) -> Result<(), ExportError> {
    let all = stacks.owned();
    let profiles = profiles(stacks, &all, options)?;
    let mut frames = SpeedscopeFrames::new(stacks);
    all.iter().for_each(|owned| stacks.stack(owned.stack).iter().for_each(|id| frames.frame(*id)));
    let (owners, owner_of) = all.owners();
    let owner_of: Vec<usize> = owner_of.collect();
    let stack_of: Vec<ProfileStackId> = all.iter().map(|owned| owned.stack).collect();
    // The frames of the owners' reporters.
    let mut names: Vec<String> = Vec::new();
    let mut by_reporter: FxHashMap<&str, u32> = FxHashMap::default();
    let first = frames.all.len() as u32;
    let mut of_owner: Vec<Option<u32>> = Vec::new();
    for owner in owners {
        of_owner.push(owner.reporter.map(|reporter| {
            *by_reporter.entry(reporter).or_insert_with(|| {
                names.push(format!("reported by {reporter}"));
                first + names.len() as u32 - 1
            })
        }));
    }
    let first_small = frames.all.len() + names.len();

    let mut json = JsonWriter::new(out);
    json.raw(
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"memory-export\"",
    )?;
    json.raw(",\"name\":")?;
    json.string(&stacks.facts().program)?;
    json.raw(",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[")?;
    let mut comma = "";
    for frame in &frames.all {
        json.raw(comma)?;
        json.raw("\n{\"name\":")?;
        json.string(&stacks.frame_name(frame))?;
        if let Some(file) = frame.file {
            json.raw(",\"file\":")?;
            json.string(file)?;
        }
        for (name, number) in [("line", frame.line), ("col", frame.line.and(frame.column))] {
            if let Some(number) = number {
                json.raw(&format!(",\"{name}\":{number}"))?;
            }
        }
        json.raw("}")?;
        comma = ",";
    }
    let small = profiles.iter().map(|profile| format!("({} small)", profile.small.0));
    for name in names.into_iter().chain(small) {
        json.raw(comma)?;
        json.raw("\n{\"name\":")?;
        json.string(&name)?;
        json.raw("}")?;
        comma = ",";
    }
    json.raw("]},\n\"profiles\":")?;
    json.array(profiles.iter().enumerate(), |json, (index, profile)| {
        json.raw("\n{\"type\":\"sampled\",\"name\":")?;
        json.string(&profile.name())?;
        json.raw(",\"unit\":")?;
        json.string(if profile.value.unit() == "bytes" { "bytes" } else { "none" })?;
        json.raw(",\"startValue\":0,\"endValue\":")?;
        json.number(profile.sum)?;
        json.raw(",\n\"samples\":[")?;
        let mut comma = "";
        for (at, _) in &profile.shown {
            let at = *at as usize;
            json.raw(comma)?;
            let stack = of_owner[owner_of[at]].into_iter().chain(frames.stack(stack_of[at]));
            json.array(stack, |json, frame| json.number(frame.into()))?;
            comma = ",";
        }
        let (count, rest) = profile.small;
        if count > 0 {
            json.raw(comma)?;
            json.raw(&format!("[{}]", first_small + index))?;
        }
        json.raw("],\n\"weights\":")?;
        let weights = profile.shown.iter().map(|(_, weight)| *weight);
        json.array(weights.chain((count > 0).then_some(rest)), JsonWriter::number)?;
        json.raw("}").map_err(ExportError::Write)
    })?;
    json.raw("}\n")?;
    json.finish()?;
    Ok(())
}

fn profiles<'a>(
    stacks: &StackProfile,
    all: &'a OwnerSums<'_>,
    options: &SpeedscopeOptions,
) -> Result<Vec<SpeedscopeProfile<'a>>, ExportError> {
    let (owners, owner_of) = all.owners();
    let owner_of: Vec<usize> = owner_of.collect();
    let mut kinds: Vec<Option<&str>> = owners.iter().map(|owner| owner.kind).collect();
    // Equal kinds are neighbors, because owners are sorted by kind.
    kinds.dedup();
    if kinds.is_empty() {
        // The client rejects a file without profiles.
        kinds.push(None);
    }
    let mut values: Vec<(usize, ProfileValue)> = stacks.values().iter().copied().enumerate().collect();
    values.retain(|(_, value)| *value != ProfileValue::Lifetimes);
    // Bytes come before blocks, and live bytes come first.
    let order = [
        ProfileValue::LiveBytes,
        ProfileValue::AllocatedBytes,
        ProfileValue::PeakBytes,
        ProfileValue::OwnPeakBytes,
    ];
    values.sort_by_key(|(_, value)| order.iter().position(|first| first == value).unwrap_or(order.len()));
    let is_difference = all.iter().any(|owned| owned.sums.iter().any(|sum| *sum < 0));
    let mut profiles = Vec::new();
    for (column, value) in values {
        for &kind in &kinds {
            let is_of_kind: Vec<bool> = owners.iter().map(|owner| owner.kind == kind).collect();
            for sign in [1, -1] {
                if sign < 0 && !is_difference {
                    continue;
                }
                let weights = all.iter().enumerate().filter(|(at, _)| is_of_kind[owner_of[*at]]);
                let weights = weights.map(|(at, owned)| (at as u32, sign * owned.sums[column]));
                let mut shown: Vec<(u32, i128)> = weights.filter(|(_, weight)| *weight > 0).collect();
                let sum = exact(FORMAT, value.name(), shown.iter().map(|(_, weight)| weight).sum())?;
                let (count, mut small) = (shown.len(), sum);
                let part = i128::from(options.small);
                shown.retain(|(_, weight)| part == 0 || weight.saturating_mul(part) >= sum);
                small -= shown.iter().map(|(_, weight)| weight).sum::<i128>();
                let small = (count - shown.len(), small);
                profiles.push(SpeedscopeProfile { value, kind, sign, is_difference, sum, shown, small });
            }
        }
    }
    Ok(profiles)
}

/// The frames of stacks, by their numbers in the file. Frames that differ only by their address are merged.
struct SpeedscopeFrames<'a> {
    stacks: &'a StackProfile,
    all: Vec<ProfileFrame<'a>>,
    numbers: Vec<Option<u32>>,
    by_frame: FxHashMap<ProfileFrame<'a>, u32>,
}

impl<'a> SpeedscopeFrames<'a> {
    fn new(stacks: &'a StackProfile) -> Self {
        let numbers = vec![None; stacks.frame_count()];
        Self { stacks, all: Vec::new(), numbers, by_frame: FxHashMap::default() }
    }

    fn frame(&mut self, id: ProfileFrameId) {
        if self.numbers[id.0 as usize].is_some() {
            return;
        }
        let mut frame = self.stacks.frame(id);
        frame.inlined = false;
        if frame.function.is_some() {
            (frame.module, frame.offset, frame.system_name) = (None, None, None);
        }
        let next = self.all.len() as u32;
        let number = *self.by_frame.entry(frame).or_insert(next);
        if number == next {
            self.all.push(frame);
        }
        self.numbers[id.0 as usize] = Some(number);
    }

    /// The numbers of a stack's frames, outermost first.
    fn stack(&self, id: ProfileStackId) -> impl Iterator<Item = u32> {
        self.stacks.stack(id).iter().rev().filter_map(|id| self.numbers[id.0 as usize])
    }
}
