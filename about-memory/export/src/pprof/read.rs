//! Reads profiles of other programs. Every number in them is untrusted.

use core::ops::Range;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;

use super::wire::{WireFault, WireField, WireFields};
use super::write::VALUES;
use crate::error::ImportError;
use crate::stack_profile::{
    ProfileFrame, ProfileFrameId, ProfileModuleId, ProfileValue, SampleLabels, StackProfile,
    StackProfileBuilder,
};

/// The limits of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PprofReadOptions {
    pub(crate) max_bytes: u64,
    pub(crate) max_entries: usize,
    pub(crate) max_frames: usize,
}

impl Default for PprofReadOptions {
    fn default() -> Self {
        Self { max_bytes: 1 << 30, max_entries: 10_000_000, max_frames: 50_000_000 }
    }
}

impl PprofReadOptions {
    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of bytes of the uncompressed profile. The reader keeps the whole profile in memory.
    /// Default: 1 GiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the maximum total number of samples, labels, locations, lines, functions, mappings and texts. Each such
    /// entry may have only two bytes in the profile, but takes more memory. Default: 10,000,000.
    #[must_use]
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.max_entries = entries;
        self
    }

    /// Sets the maximum number of frames of all stacks together. A small profile can refer many times to a location
    /// with many lines. Default: 50,000,000.
    #[must_use]
    pub fn max_frames(mut self, frames: usize) -> Self {
        self.max_frames = frames;
        self
    }
}

/// The labels in profiles of this crate, except sizes.
const LABELS: [&str; 4] = ["kind", "reporter", "type", "thread"];

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whether a file that starts with these bytes may be a profile, compressed or not. Returns `false` for a text.
pub fn is_pprof(start: &[u8]) -> bool {
    let mut unpacked = Vec::new();
    let start = match start.starts_with(&GZIP) {
        true => {
            // `start` is only a part of the stream, so an error at its end is expected.
            let _ = MultiGzDecoder::new(start).take(64).read_to_end(&mut unpacked);
            &unpacked
        }
        false => start,
    };
    // All fields that occur many times are messages or texts: they start with their length, and have small field
    // numbers.
    let is_field = start.first().is_some_and(|byte| byte & 7 == 2 && (1..=14).contains(&(byte >> 3)));
    let is_json = start.trim_ascii_start().first().is_some_and(|byte| matches!(byte, b'{' | b'['));
    let is_text = start.iter().take(64).all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    is_field && !is_json && !is_text
}

/// The names of amounts in profiles of other programs.
const OTHERS: [(ProfileValue, &str); 6] = [
    (ProfileValue::AllocatedBlocks, "allocations"),
    (ProfileValue::AllocatedBytes, "allocated"),
    (ProfileValue::LiveBlocks, "objects"),
    (ProfileValue::LiveBytes, "space"),
    (ProfileValue::LiveBlocks, "count"),
    (ProfileValue::LiveBytes, "bytes"),
];

/// Reads a profile, compressed or not. Ignores unknown labels, and amounts that are not of memory.
///
/// # Errors
///
/// Returns an error if `reader` fails, if a limit is exceeded, if the bytes are not a valid profile, or if the profile
/// has no amounts of memory.
pub fn read(reader: impl Read, options: &PprofReadOptions) -> Result<StackProfile, ImportError> {
    let bytes = unpacked(reader, options.max_bytes)?;
    let mut left = RemainingLimits::new(options);
    let profile = ReadProfile::parse(&bytes, &mut left)?;
    profile.stacks(left)
}

fn unpacked(reader: impl Read, most: u64) -> Result<Vec<u8>, ImportError> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let is_gzip = reader.fill_buf().map_err(ImportError::Read)?.starts_with(&GZIP);
    let mut bytes = Vec::new();
    let limit = most.saturating_add(1);
    let read = match is_gzip {
        true => MultiGzDecoder::new(reader).take(limit).read_to_end(&mut bytes),
        false => reader.take(limit).read_to_end(&mut bytes),
    };
    read.map_err(ImportError::Read)?;
    if bytes.len() as u64 > most {
        return Err(ImportError::TooLong(most));
    }
    Ok(bytes)
}

/// The parts of the limits that are not used yet.
struct RemainingLimits<'o> {
    options: &'o PprofReadOptions,
    entries: usize,
    frames: usize,
    /// The remaining bytes of texts. Each reference to a text counts.
    text: u64,
}

impl<'o> RemainingLimits<'o> {
    fn new(options: &'o PprofReadOptions) -> Self {
        let PprofReadOptions { max_bytes, max_entries, max_frames } = *options;
        Self { options, entries: max_entries, frames: max_frames, text: max_bytes }
    }

    fn entry(&mut self) -> Result<(), ImportError> {
        let left = self.entries.checked_sub(1);
        self.entries = left.ok_or(ImportError::TooManyEntries(self.options.max_entries))?;
        Ok(())
    }

    fn frames(&mut self, count: usize) -> Result<(), ImportError> {
        let left = self.frames.checked_sub(count);
        self.frames = left.ok_or(ImportError::TooManyFrames(self.options.max_frames))?;
        Ok(())
    }

    fn text(&mut self, bytes: usize) -> Result<(), ImportError> {
        let left = self.text.checked_sub(bytes as u64);
        self.text = left.ok_or(ImportError::TooMuchText(self.options.max_bytes))?;
        Ok(())
    }
}

/// The decoded fields of a profile. A field for a text contains the index of the text in `texts`.
#[derive(Default)]
struct ReadProfile<'b> {
    texts: Vec<&'b [u8]>,
    types: Vec<(u64, u64)>,
    samples: Vec<SamplePart<'b>>,
    mappings: Vec<ReadMapping>,
    locations: Vec<SamplePart<'b>>,
    functions: Vec<ReadFunction>,
    time: i64,
    duration: i64,
    /// The name and the unit of the amount that `period` counts.
    period_type: (u64, u64),
    period: i64,
}

#[derive(Clone, Copy)]
struct SamplePart<'b>(WireFields<'b>);

#[derive(Clone, Copy, Default)]
struct ReadMapping {
    id: u64,
    start: u64,
    file_offset: u64,
    path: u64,
    build_id: u64,
}

#[derive(Clone, Copy, Default)]
struct ReadFunction {
    id: u64,
    name: u64,
    system_name: u64,
    file: u64,
}

/// The texts of a function. An empty text means unknown.
#[derive(Default)]
struct FunctionTexts {
    name: String,
    system_name: String,
    file: String,
}

impl From<WireFault> for ImportError {
    fn from((at, what): WireFault) -> Self {
        Self::Malformed(at, what)
    }
}

/// Calls `each` with each field of a message, and with the position after the field.
fn each_field<'b, E: From<WireFault>>(
    mut fields: WireFields<'b>,
    mut each: impl FnMut(u32, WireField<'b>, u64) -> Result<(), E>,
) -> Result<(), E> {
    while let Some((number, field)) = fields.next()? {
        each(number, field, fields.at())?;
    }
    Ok(())
}

/// Reads the numeric fields of a message. `wanted` are the field numbers, in the order of the result.
fn numbers<'b, const N: usize>(fields: WireFields<'b>, wanted: [u32; N]) -> Result<[u64; N], WireFault> {
    let mut found = [0; N];
    each_field(fields, |number, field, end| {
        if let Some(place) = wanted.iter().position(|wanted| *wanted == number) {
            found[place] = field.number(end)?;
        }
        Ok::<_, WireFault>(())
    })?;
    Ok(found)
}

impl<'b> ReadProfile<'b> {
    fn parse(bytes: &'b [u8], left: &mut RemainingLimits<'_>) -> Result<Self, ImportError> {
        let mut profile = Self::default();
        each_field(WireFields::new(bytes), |number, field, end| {
            if (1..=6).contains(&number) {
                left.entry()?;
            }
            match number {
                1 => {
                    let [name, unit] = numbers(field.message(end)?, [1, 2])?;
                    profile.types.push((name, unit));
                }
                2 => profile.samples.push(SamplePart(field.message(end)?)),
                3 => {
                    let [id, start, file_offset, path, build_id] =
                        numbers(field.message(end)?, [1, 2, 4, 5, 6])?;
                    profile.mappings.push(ReadMapping { id, start, file_offset, path, build_id });
                }
                4 => profile.locations.push(SamplePart(field.message(end)?)),
                5 => {
                    let [id, name, system_name, file] = numbers(field.message(end)?, [1, 2, 3, 4])?;
                    profile.functions.push(ReadFunction { id, name, system_name, file });
                }
                6 => match field {
                    WireField::Bytes(text) => profile.texts.push(text),
                    _ => return Err(ImportError::Malformed(end, "a number in place of a text")),
                },
                9 => profile.time = field.number(end)? as i64,
                10 => profile.duration = field.number(end)? as i64,
                11 => {
                    let [name, unit] = numbers(field.message(end)?, [1, 2])?;
                    profile.period_type = (name, unit);
                }
                12 => profile.period = field.number(end)? as i64,
                _ => {}
            }
            Ok::<_, ImportError>(())
        })?;
        Ok(profile)
    }

    /// A text by its number. Bytes that are not UTF-8 are replaced.
    fn text(&self, number: u64, left: &mut RemainingLimits<'_>) -> Result<String, ImportError> {
        let text = self.bytes(number)?;
        left.text(text.len())?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn bytes(&self, number: u64) -> Result<&'b [u8], ImportError> {
        let text = usize::try_from(number).ok().and_then(|index| self.texts.get(index));
        match text {
            Some(text) => Ok(text),
            None if number == 0 => Ok(&[]),
            None => Err(ImportError::Dangling("text", number)),
        }
    }

    /// The known values, each with its index among the amounts of a sample.
    fn values(&self, left: &mut RemainingLimits<'_>) -> Result<Vec<(ProfileValue, usize)>, ImportError> {
        let names: Vec<String> =
            self.types.iter().map(|(name, _)| self.text(*name, left)).collect::<Result<_, _>>()?;
        let mut found: Vec<(ProfileValue, usize)> = Vec::new();
        let known = VALUES.iter().map(|(value, name, _)| (*value, *name)).chain(OTHERS);
        for (value, name) in known {
            let place = names.iter().position(|other| other == name);
            if let Some(place) = place.filter(|_| found.iter().all(|(other, _)| *other != value)) {
                found.push((value, place));
            }
        }
        if found.is_empty() {
            return Err(ImportError::NotOfMemory(names.join(", ")));
        }
        found.sort_unstable();
        Ok(found)
    }

    fn stacks(self, mut left: RemainingLimits<'_>) -> Result<StackProfile, ImportError> {
        let left = &mut left;
        let values = self.values(left)?;
        let mut builder =
            StackProfileBuilder::new(&values.iter().map(|(value, _)| *value).collect::<Vec<_>>());
        let time = |nanoseconds: i64| {
            u64::try_from(nanoseconds).ok().filter(|time| *time > 0).map(Duration::from_nanos)
        };
        builder.facts().time = time(self.time);
        builder.facts().duration = time(self.duration);
        let is_of_bytes = self.bytes(self.period_type.1)? == b"bytes";
        let period = u64::try_from(self.period).ok().filter(|period| *period > 1 && is_of_bytes);
        builder.facts().sample_bytes = period;
        let mut modules: Vec<(ReadMapping, ProfileModuleId)> = Vec::new();
        for mapping in &self.mappings {
            let id = builder.module(&self.text(mapping.path, left)?, &self.text(mapping.build_id, left)?);
            // This crate writes mappings without a start, and addresses in the file.
            if (mapping.start, mapping.file_offset) != (0, 0) {
                builder.set_file_offsets(id);
            }
            modules.push((*mapping, id));
        }
        modules.sort_by_key(|(mapping, _)| mapping.id);
        if let Some((mapping, _)) = modules.first() {
            builder.facts().program = self.text(mapping.path, left)?;
        }
        let mut functions = self.functions.clone();
        functions.sort_by_key(|function| function.id);
        let mut function_texts = Vec::with_capacity(functions.len());
        for ReadFunction { name, system_name, file, .. } in &functions {
            let (name, system_name) = (self.text(*name, left)?, self.text(*system_name, left)?);
            function_texts.push(FunctionTexts { name, system_name, file: self.text(*file, left)? });
        }
        let functions = FunctionNames { all: functions, texts: function_texts };
        // The frames of all locations, and the range of each location.
        let mut line_frames: Vec<ProfileFrameId> = Vec::new();
        let mut locations: Vec<(u64, Range<usize>)> = Vec::with_capacity(self.locations.len());
        for part in &self.locations {
            let start = line_frames.len();
            let id = location(part.0, &modules, &functions, &mut builder, &mut line_frames, left)?;
            locations.push((id, start..line_frames.len()));
        }
        locations.sort_by_key(|(id, _)| *id);
        drop(functions);
        let (mut amounts, mut frames, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for SamplePart(sample) in &self.samples {
            amounts.clear();
            frames.clear();
            labels.clear();
            let mut size = None;
            each_field(*sample, |number, field, end| {
                match number {
                    1 => field.each_number(end, |id| {
                        let place = locations
                            .binary_search_by_key(&id, |(id, _)| *id)
                            .map_err(|_| ImportError::Dangling("location", id))?;
                        let of_location = &line_frames[locations[place].1.clone()];
                        left.frames(of_location.len())?;
                        frames.extend_from_slice(of_location);
                        Ok::<_, ImportError>(())
                    })?,
                    // One amount more than expected is enough to detect a wrong sample.
                    2 => field.each_number(end, |amount| {
                        if amounts.len() <= self.types.len() {
                            amounts.push(amount);
                        }
                        Ok::<_, ImportError>(())
                    })?,
                    3 => {
                        left.entry()?;
                        labels.push(numbers(field.message(end)?, [1, 2, 3])?);
                    }
                    _ => {}
                }
                Ok::<_, ImportError>(())
            })?;
            let mut texts: Vec<(&'static str, String)> = Vec::new();
            for [key, value, number] in labels.iter().copied() {
                let key = self.bytes(key)?;
                if key == b"bytes" {
                    size = Some(number);
                } else if let Some(name) = LABELS.into_iter().find(|name| name.as_bytes() == key)
                    && texts.iter().all(|(known, _)| *known != name)
                {
                    texts.push((name, self.text(value, left)?));
                }
            }
            let label = |name: &str| {
                let found = texts.iter().find(|(key, value)| *key == name && !value.is_empty());
                found.map(|(_, value)| &**value)
            };
            let labels = SampleLabels {
                kind: label("kind"),
                reporter: label("reporter"),
                type_name: label("type"),
                thread: label("thread"),
            };
            if amounts.len() != self.types.len() {
                return Err(ImportError::Malformed(sample.at(), "a sample without an amount for each type"));
            }
            let amounts: Vec<i64> = values.iter().map(|(_, place)| amounts[*place] as i64).collect();
            let stack = builder.stack(&frames);
            let labels = builder.labels(&labels);
            builder.sample(stack, labels, size, &amounts);
        }
        builder.finish().map_err(ImportError::Amounts)
    }
}

/// The names of functions, sorted by id, and their texts in the same order.
struct FunctionNames {
    all: Vec<ReadFunction>,
    texts: Vec<FunctionTexts>,
}

impl FunctionNames {
    fn texts(&self, id: u64) -> Result<&FunctionTexts, ImportError> {
        let place = self.all.binary_search_by_key(&id, |known| known.id);
        Ok(&self.texts[place.map_err(|_| ImportError::Dangling("function", id))?])
    }
}

/// Adds the frames of a location, innermost first, and returns its id.
fn location(
    fields: WireFields<'_>,
    modules: &[(ReadMapping, ProfileModuleId)],
    functions: &FunctionNames,
    builder: &mut StackProfileBuilder,
    frames: &mut Vec<ProfileFrameId>,
    left: &mut RemainingLimits<'_>,
) -> Result<u64, ImportError> {
    let [id, mapping, address] = numbers(fields, [1, 2, 3])?;
    let module = match mapping {
        0 => None,
        mapping => {
            let place = modules.binary_search_by_key(&mapping, |(mapping, _)| mapping.id);
            Some(modules[place.map_err(|_| ImportError::Dangling("mapping", mapping))?])
        }
    };
    let offset = module
        .map(|(mapping, _)| address.wrapping_sub(mapping.start).wrapping_add(mapping.file_offset))
        .filter(|_| address != 0);
    let place = ProfileFrame { module: module.map(|(_, id)| id), offset, ..ProfileFrame::default() };
    let mut count = 0;
    each_field(fields, |number, _, _| {
        count += u64::from(number == 4);
        Ok::<_, WireFault>(())
    })?;
    if count == 0 {
        frames.push(builder.frame(&place));
        return Ok(id);
    }
    each_field(fields, |number, field, end| {
        if number != 4 {
            return Ok(());
        }
        left.entry()?;
        count -= 1;
        let [function, line, column] = numbers(field.message(end)?, [1, 2, 3])?;
        let texts = functions.texts(function)?;
        left.text(texts.name.len() + texts.system_name.len() + texts.file.len())?;
        let known = |text: &&str| !text.is_empty();
        let small = |number: u64| u32::try_from(number).ok().filter(|number| *number > 0);
        frames.push(builder.frame(&ProfileFrame {
            function: Some(&*texts.name).filter(known),
            system_name: Some(&*texts.system_name).filter(known),
            file: Some(&*texts.file).filter(known),
            line: small(line),
            column: small(column),
            inlined: count > 0,
            ..place
        }));
        Ok::<_, ImportError>(())
    })?;
    Ok(id)
}
