//! Reads profiles that others wrote. Every number in them is untrusted.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;

use super::wire::{Fault, Field, Fields};
use super::write::VALUES;
use crate::error::ImportError;
use crate::stacks::{Frame, FrameId, Labels, ModuleId, Stacks, StacksBuilder, Value};

/// The limits of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The maximum of bytes of the uncompressed profile, which the reader holds in memory. Default: 1 GiB.
    pub max_bytes: u64,
    /// The maximum of frames of all stacks together: a small profile can name a location with many lines again and again.
    /// Default: 100,000,000.
    pub max_frames: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_bytes: 1 << 30, max_frames: 100_000_000 }
    }
}

impl ReadOptions {
    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets [`max_frames`](Self::max_frames).
    #[must_use]
    pub fn max_frames(mut self, frames: usize) -> Self {
        self.max_frames = frames;
        self
    }
}

/// The labels that a profile of this crate has, apart from sizes.
const LABELS: [&str; 4] = ["kind", "reporter", "type", "thread"];

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whether a file that starts with these bytes may be a profile, compressed or not. A file of JSON is not.
pub fn is_pprof(start: &[u8]) -> bool {
    let mut unpacked = Vec::new();
    let start = match start.starts_with(&GZIP) {
        true => {
            // The start of a stream ends too early, which does not matter.
            let _ = MultiGzDecoder::new(start).take(64).read_to_end(&mut unpacked);
            &unpacked
        }
        false => start,
    };
    // All fields that a profile has many of are messages or texts.
    let is_field = start.first().is_some_and(|byte| byte & 7 == 2 && byte >> 3 > 0);
    let is_json = start.trim_ascii_start().first().is_some_and(|byte| matches!(byte, b'{' | b'['));
    is_field && !is_json
}

/// Names of amounts in profiles of other programs.
const OTHERS: [(Value, &str); 6] = [
    (Value::AllocatedBlocks, "allocations"),
    (Value::AllocatedBytes, "allocated"),
    (Value::LiveBlocks, "objects"),
    (Value::LiveBytes, "space"),
    (Value::LiveBlocks, "count"),
    (Value::LiveBytes, "bytes"),
];

/// Reads a profile, compressed or not. Amounts other than those of memory, and unknown labels, are left out.
///
/// # Errors
///
/// If `reader` fails, if a limit is reached, if the bytes are not a valid profile, or if it has no amounts of memory.
pub fn read(reader: impl Read, options: &ReadOptions) -> Result<Stacks, ImportError> {
    let bytes = unpacked(reader, options.max_bytes)?;
    let profile = Profile::parse(&bytes)?;
    profile.stacks(options.max_frames)
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

/// The fields of a profile, still with the numbers of texts.
#[derive(Default)]
struct Profile<'b> {
    texts: Vec<&'b [u8]>,
    types: Vec<(u64, u64)>,
    samples: Vec<Part<'b>>,
    mappings: Vec<Mapping>,
    locations: Vec<Part<'b>>,
    functions: Vec<Function>,
    time: i64,
    duration: i64,
}

#[derive(Clone, Copy)]
struct Part<'b>(Fields<'b>);

#[derive(Clone, Copy, Default)]
struct Mapping {
    id: u64,
    start: u64,
    file_offset: u64,
    path: u64,
    build_id: u64,
}

#[derive(Clone, Copy, Default)]
struct Function {
    id: u64,
    name: u64,
    system_name: u64,
    file: u64,
}

impl From<Fault> for ImportError {
    fn from((at, what): Fault) -> Self {
        Self::Malformed(at, what)
    }
}

/// Calls `each` with each field of a message and the place after it.
fn each_field<'b>(
    mut fields: Fields<'b>,
    mut each: impl FnMut(u32, Field<'b>, u64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    while let Some((number, field)) = fields.next()? {
        each(number, field, fields.at())?;
    }
    Ok(())
}

/// Reads the fields of a message that are numbers, in the places that `place` gives.
fn numbers<'b, const N: usize>(fields: Fields<'b>, wanted: [u32; N]) -> Result<[u64; N], Fault> {
    let mut found = [0; N];
    each_field(fields, |number, field, end| {
        if let Some(place) = wanted.iter().position(|wanted| *wanted == number) {
            found[place] = field.number(end)?;
        }
        Ok(())
    })?;
    Ok(found)
}

impl<'b> Profile<'b> {
    fn parse(bytes: &'b [u8]) -> Result<Self, ImportError> {
        let mut profile = Self::default();
        each_field(Fields::new(bytes), |number, field, end| {
            match number {
                1 => {
                    let [name, unit] = numbers(field.message(end)?, [1, 2])?;
                    profile.types.push((name, unit));
                }
                2 => profile.samples.push(Part(field.message(end)?)),
                3 => {
                    let [id, start, file_offset, path, build_id] =
                        numbers(field.message(end)?, [1, 2, 4, 5, 6])?;
                    profile.mappings.push(Mapping { id, start, file_offset, path, build_id });
                }
                4 => profile.locations.push(Part(field.message(end)?)),
                5 => {
                    let [id, name, system_name, file] = numbers(field.message(end)?, [1, 2, 3, 4])?;
                    profile.functions.push(Function { id, name, system_name, file });
                }
                6 => match field {
                    Field::Bytes(text) => profile.texts.push(text),
                    _ => return Err((end, "a number in place of a text")),
                },
                9 => profile.time = field.number(end)? as i64,
                10 => profile.duration = field.number(end)? as i64,
                _ => {}
            }
            Ok(())
        })?;
        Ok(profile)
    }

    /// A text. Bytes that are not UTF-8 are replaced.
    fn text(&self, number: u64) -> Result<String, ImportError> {
        self.bytes(number).map(|text| String::from_utf8_lossy(text).into_owned())
    }

    fn bytes(&self, number: u64) -> Result<&'b [u8], ImportError> {
        let text = usize::try_from(number).ok().and_then(|index| self.texts.get(index));
        match text {
            Some(text) => Ok(text),
            None if number == 0 => Ok(&[]),
            None => Err(ImportError::Dangling("text", number)),
        }
    }

    /// The known values, each with its place among the amounts of a sample.
    fn values(&self) -> Result<Vec<(Value, usize)>, ImportError> {
        let names: Vec<String> =
            self.types.iter().map(|(name, _)| self.text(*name)).collect::<Result<_, _>>()?;
        let mut found: Vec<(Value, usize)> = Vec::new();
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

    fn stacks(self, max_frames: usize) -> Result<Stacks, ImportError> {
        let values = self.values()?;
        let mut builder = StacksBuilder::new(&values.iter().map(|(value, _)| *value).collect::<Vec<_>>());
        let time = |nanoseconds: i64| {
            u64::try_from(nanoseconds).ok().filter(|time| *time > 0).map(Duration::from_nanos)
        };
        builder.facts().time = time(self.time);
        builder.facts().duration = time(self.duration);
        let mut modules: Vec<(Mapping, ModuleId)> = Vec::new();
        for mapping in &self.mappings {
            let id = builder.module(&self.text(mapping.path)?, &self.text(mapping.build_id)?);
            modules.push((*mapping, id));
        }
        modules.sort_by_key(|(mapping, _)| mapping.id);
        if let Some((mapping, _)) = modules.first() {
            builder.facts().program = self.text(mapping.path)?;
        }
        let mut functions = self.functions.clone();
        functions.sort_by_key(|function| function.id);
        let mut locations: Vec<(u64, Vec<FrameId>)> = Vec::with_capacity(self.locations.len());
        for part in &self.locations {
            locations.push(self.location(part.0, &modules, &functions, &mut builder)?);
        }
        locations.sort_by_key(|(id, _)| *id);
        let (mut ids, mut amounts, mut frames) = (Vec::new(), Vec::new(), Vec::new());
        let mut all_frames = 0;
        for Part(sample) in &self.samples {
            ids.clear();
            amounts.clear();
            frames.clear();
            let mut labels = Vec::new();
            let mut size = None;
            each_field(*sample, |number, field, end| {
                match number {
                    1 => field.add_to(end, &mut ids)?,
                    2 => field.add_to(end, &mut amounts)?,
                    3 => labels.push(numbers(field.message(end)?, [1, 2, 3])?),
                    _ => {}
                }
                Ok(())
            })?;
            for id in &ids {
                let place = locations
                    .binary_search_by_key(id, |(id, _)| *id)
                    .map_err(|_| ImportError::Dangling("location", *id))?;
                all_frames += locations[place].1.len();
                if all_frames > max_frames {
                    return Err(ImportError::TooManyFrames(max_frames));
                }
                frames.extend_from_slice(&locations[place].1);
            }
            let mut texts: Vec<(&'static str, String)> = Vec::new();
            for [key, value, number] in labels {
                let key = self.bytes(key)?;
                if key == b"bytes" {
                    size = Some(number);
                } else if let Some(name) = LABELS.into_iter().find(|name| name.as_bytes() == key)
                    && texts.iter().all(|(known, _)| *known != name)
                {
                    texts.push((name, self.text(value)?));
                }
            }
            let label = |name: &str| {
                let found = texts.iter().find(|(key, value)| *key == name && !value.is_empty());
                found.map(|(_, value)| &**value)
            };
            let labels = Labels {
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

    /// The id and the frames of a location, innermost first.
    fn location(
        &self,
        fields: Fields<'b>,
        modules: &[(Mapping, ModuleId)],
        functions: &[Function],
        builder: &mut StacksBuilder,
    ) -> Result<(u64, Vec<FrameId>), ImportError> {
        let [id, mapping, address] = numbers(fields, [1, 2, 3])?;
        let mut lines = Vec::new();
        each_field(fields, |number, field, end| {
            if number == 4 {
                lines.push(numbers(field.message(end)?, [1, 2, 3])?);
            }
            Ok(())
        })?;
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
        let place = Frame { module: module.map(|(_, id)| id), offset, ..Frame::default() };
        if lines.is_empty() {
            return Ok((id, vec![builder.frame(&place)]));
        }
        let count = lines.len();
        let mut frames = Vec::with_capacity(count);
        for (index, [function, line, column]) in lines.into_iter().enumerate() {
            let found = functions
                .binary_search_by_key(&function, |known| known.id)
                .map_err(|_| ImportError::Dangling("function", function))?;
            let Function { name, system_name, file, .. } = functions[found];
            let (name, system_name, file) = (self.text(name)?, self.text(system_name)?, self.text(file)?);
            let known = |text: &str| !text.is_empty();
            let small = |number: u64| u32::try_from(number).ok().filter(|number| *number > 0);
            frames.push(builder.frame(&Frame {
                function: Some(&*name).filter(|text| known(text)),
                system_name: Some(&*system_name).filter(|text| known(text)),
                file: Some(&*file).filter(|text| known(text)),
                line: small(line),
                column: small(column),
                inlined: index + 1 < count,
                ..place
            }));
        }
        Ok((id, frames))
    }
}
