//! Writes a profile, field by field, without holding it in memory.

use std::io::Write;
use std::time::Duration;

use flate2::{Compression, GzBuilder};
use rustc_hash::FxHashMap;

use super::wire::WireMessage;
use crate::beside::{self, PieceWriter};
use crate::error::ExportError;
use crate::stack_profile::{
    ProfileFrame, ProfileFrameId, ProfileModuleId, ProfileStackId, ProfileValue, SampleLabelsId, StackProfile,
};
use crate::texts::{ProfileTexts, StoredTextId};

/// How a profile identifies code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PprofSymbols {
    /// By functions, files and lines, so that clients need no look-up.
    #[default]
    Inline,
    /// By address and build id, if a frame has them: clients look up the functions.
    BuildId,
}

/// Options for writing a profile.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PprofOptions {
    pub(crate) symbols: PprofSymbols,
    pub(crate) sizes: bool,
}

impl PprofOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how the profile identifies code. Default: by functions.
    #[must_use]
    pub fn symbols(mut self, symbols: PprofSymbols) -> Self {
        self.symbols = symbols;
        self
    }

    /// Whether blocks of different sizes are separate samples with a label `bytes`. Default: no.
    #[must_use]
    pub fn sizes(mut self, sizes: bool) -> Self {
        self.sizes = sizes;
        self
    }
}

/// The values that clients know, in the order that clients expect.
pub(super) const VALUES: [(ProfileValue, &str, &str); 4] = [
    (ProfileValue::AllocatedBlocks, "alloc_objects", "count"),
    (ProfileValue::AllocatedBytes, "alloc_space", "bytes"),
    (ProfileValue::LiveBlocks, "inuse_objects", "count"),
    (ProfileValue::LiveBytes, "inuse_space", "bytes"),
];

/// A pattern for functions that allocate for others. Clients drop these frames after the look-up of functions.
const DROPPED: &str = "__rust_.*|__rdl_.*|__rg_.*|alloc::alloc::.*|dmd::.*|malloc|calloc|realloc|reallocarray|\
                       memalign|posix_memalign|aligned_alloc";

/// The compression level. Files have hundreds of megabytes before compression: a higher level takes longer than
/// everything else.
const LEVEL: u32 = 2;

/// Writes a profile, compressed. Equal stacks give equal bytes.
///
/// # Errors
///
/// Returns an error if `out` fails, if the profile contains no value that pprof has, or if the sum of a value over all
/// samples exceeds 63 bits. The sum matters because clients add up all samples.
pub fn write(stacks: &StackProfile, options: &PprofOptions, out: impl Write) -> Result<(), ExportError> {
    let columns: Vec<usize> = VALUES.iter().filter_map(|(value, ..)| stacks.index_of(*value)).collect();
    if columns.is_empty() {
        return Err(ExportError::NotRecorded("pprof", "live or allocated blocks"));
    }
    for (value, name, _) in VALUES {
        let total = stacks.total(value).unwrap_or_default();
        if i64::try_from(total).is_err() {
            return Err(ExportError::TooLarge("pprof", name, total, i128::from(i64::MAX)));
        }
    }
    // The default header contains no time, so equal profiles are equal files.
    let mut out = GzBuilder::new().write(out, Compression::new(LEVEL));
    beside::write(&mut out, |out| {
        let mut writer = ProfileWriter {
            stacks,
            options,
            columns,
            out,
            message: WireMessage::default(),
            inner: WireMessage::default(),
            room: WireMessage::default(),
            texts: InternedTexts::new(stacks.texts()),
            locations: LocationTable::default(),
            location_ids: Vec::new(),
            of_stack: None,
            labels: Vec::new(),
        };
        writer.profile()
    })?;
    out.finish()?;
    Ok(())
}

struct ProfileWriter<'a> {
    stacks: &'a StackProfile,
    options: &'a PprofOptions,
    columns: Vec<usize>,
    out: &'a mut PieceWriter,
    message: WireMessage,
    inner: WireMessage,
    room: WireMessage,
    texts: InternedTexts<'a>,
    locations: LocationTable,
    /// The locations of a stack.
    location_ids: Vec<u64>,
    of_stack: Option<ProfileStackId>,
    /// The encoded fields of labels.
    labels: Vec<Option<Box<[u8]>>>,
}

/// The string table. The first text is empty.
struct InternedTexts<'a> {
    texts: &'a ProfileTexts,
    /// The numbers of the profile's texts; 0 for a text without a number.
    numbers: Vec<u32>,
    own: FxHashMap<String, u64>,
    all: Vec<LocationEntry>,
}

enum LocationEntry {
    Text(StoredTextId),
    Own(String),
}

impl<'a> InternedTexts<'a> {
    fn new(texts: &'a ProfileTexts) -> Self {
        let (numbers, own) = (vec![0; texts.len()], FxHashMap::default());
        Self { texts, numbers, own, all: vec![LocationEntry::Own(String::new())] }
    }

    /// The number of one of the profile's texts. Adds the text if it has no number.
    fn number(&mut self, text: StoredTextId) -> u64 {
        let number = &mut self.numbers[text.0 as usize];
        if *number == 0 && !self.texts.get(text).is_empty() {
            *number = self.all.len() as u32;
            self.all.push(LocationEntry::Text(text));
        }
        u64::from(*number)
    }

    fn id(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(known) = self.texts.find(text) {
            return self.number(known);
        }
        if let Some(known) = self.own.get(text) {
            return *known;
        }
        let next = self.all.len() as u64;
        self.own.insert(text.to_owned(), next);
        self.all.push(LocationEntry::Own(text.to_owned()));
        next
    }
}

/// The locations. Each location is an address with the functions that the compiler inlined there, innermost first.
#[derive(Default)]
struct LocationTable {
    /// The first frame and the number of frames of each location in `frames`.
    all: Vec<(u32, u32)>,
    frames: Vec<ProfileFrameId>,
    /// The location of each frame that is alone at its address.
    single: Vec<u64>,
    others: FxHashMap<Vec<ProfileFrameId>, u64>,
}

impl LocationTable {
    fn id(&mut self, frames: &[ProfileFrameId]) -> u64 {
        let next = self.all.len() as u64 + 1;
        let id = match frames {
            [frame] => {
                let index = frame.0 as usize;
                if index >= self.single.len() {
                    self.single.resize(index + 1, 0);
                }
                let known = &mut self.single[index];
                if *known == 0 {
                    *known = next;
                }
                *known
            }
            frames => match self.others.get(frames) {
                Some(known) => *known,
                None => {
                    self.others.insert(frames.to_vec(), next);
                    next
                }
            },
        };
        if id == next {
            self.all.push((self.frames.len() as u32, frames.len() as u32));
            self.frames.extend_from_slice(frames);
        }
        id
    }
}

impl ProfileWriter<'_> {
    fn profile(&mut self) -> Result<(), ExportError> {
        for (value, name, unit) in VALUES {
            if self.stacks.index_of(value).is_some() {
                self.value_type(1, name, unit)?;
            }
        }
        self.samples()?;
        self.mappings()?;
        self.locations_and_functions()?;
        self.facts()?;
        for entry in core::mem::take(&mut self.texts.all) {
            self.message.clear();
            self.message.bytes(
                6,
                match &entry {
                    LocationEntry::Text(text) => self.stacks.texts().get(*text).as_bytes(),
                    LocationEntry::Own(text) => text.as_bytes(),
                },
            );
            self.out.write_all(&self.message.0)?;
        }
        Ok(())
    }

    /// Writes the message `inner` as a field of the profile.
    fn send(&mut self, field: u32) -> Result<(), ExportError> {
        self.message.clear();
        self.message.bytes(field, &self.inner.0);
        self.out.write_all(&self.message.0)?;
        self.inner.clear();
        Ok(())
    }

    fn value_type(&mut self, field: u32, name: &str, unit: &str) -> Result<(), ExportError> {
        let (name, unit) = (self.texts.id(name), self.texts.id(unit));
        self.inner.number(1, name);
        self.inner.number(2, unit);
        self.send(field)
    }

    fn samples(&mut self) -> Result<(), ExportError> {
        let stacks = self.stacks;
        if self.options.sizes {
            return stacks.samples().try_for_each(|sample| {
                let amounts: Vec<i128> = sample.amounts.iter().map(|amount| i128::from(*amount)).collect();
                self.sample(sample.stack, sample.labels, sample.size, &amounts)
            });
        }
        stacks.without_sizes(|stack, labels, sums| self.sample(stack, labels, None, sums))
    }

    fn sample(
        &mut self,
        stack: ProfileStackId,
        labels: SampleLabelsId,
        size: Option<u64>,
        amounts: &[i128],
    ) -> Result<(), ExportError> {
        if self.columns.iter().all(|column| amounts[*column] == 0) {
            return Ok(());
        }
        if self.of_stack != Some(stack) {
            self.find_locations(stack);
            self.of_stack = Some(stack);
        }
        self.inner.numbers(1, self.location_ids.iter().copied(), &mut self.room);
        for column in &self.columns {
            let amount = amounts[*column];
            if i64::try_from(amount).is_err() {
                let name = self.stacks.values()[*column].name();
                return Err(ExportError::TooLarge("pprof", name, amount, i128::from(i64::MAX)));
            }
        }
        // All amounts fit into 64 bits. Negative amounts are in two's complement.
        self.inner.numbers(2, self.columns.iter().map(|column| amounts[*column] as u64), &mut self.room);
        if self.labels.len() <= labels.0 as usize {
            self.labels.resize(labels.0 as usize + 1, None);
        }
        if self.labels[labels.0 as usize].is_none() {
            let mut encoded = WireMessage::default();
            for (key, value) in self.stacks.label_texts(labels) {
                self.room.clear();
                self.room.number(1, self.texts.id(key));
                self.room.number(2, self.texts.number(value));
                encoded.bytes(3, &self.room.0);
            }
            self.labels[labels.0 as usize] = Some(encoded.0.into());
        }
        self.inner.0.extend_from_slice(self.labels[labels.0 as usize].as_deref().unwrap_or_default());
        if let Some(size) = size {
            self.room.clear();
            self.room.number(1, self.texts.id("bytes"));
            self.room.number(3, size);
            self.room.number(4, self.texts.id("bytes"));
            self.inner.bytes(3, &self.room.0);
        }
        self.send(2)
    }

    fn find_locations(&mut self, stack: ProfileStackId) {
        self.location_ids.clear();
        let by_address = self.options.symbols == PprofSymbols::BuildId;
        for frames in self.stacks.addresses(stack) {
            // If code is identified by address, the innermost frame represents all frames of the address.
            let frames = if by_address { &frames[..1] } else { frames };
            self.location_ids.push(self.locations.id(frames));
        }
    }

    fn mappings(&mut self) -> Result<(), ExportError> {
        let modules = self.stacks.modules();
        let mut used = vec![false; modules.len()];
        for frame in &self.locations.frames {
            if let Some(ProfileModuleId(module)) = self.stacks.frame(*frame).module {
                used[module as usize] = true;
            }
        }
        for (index, module) in modules.iter().enumerate() {
            // Clients name the profile after the first mapping, which must be the main program.
            if index > 0 && !used[index] {
                continue;
            }
            self.inner.number(1, index as u64 + 1);
            self.inner.number(3, u64::MAX);
            self.inner.number(5, self.texts.id(&module.path));
            self.inner.number(6, self.texts.id(&module.build_id));
            if self.options.symbols == PprofSymbols::Inline {
                // These flags state that functions, files, lines and inlined functions are present, so clients look
                // nothing up.
                (7..=10).for_each(|field| self.inner.number(field, 1));
            }
            self.send(3)?;
        }
        Ok(())
    }

    fn locations_and_functions(&mut self) -> Result<(), ExportError> {
        let LocationTable { all, frames, .. } = core::mem::take(&mut self.locations);
        let mut ids: FxHashMap<(u64, u64, u64), u64> = FxHashMap::default();
        let mut functions: Vec<(u64, u64, u64)> = Vec::new();
        for (index, (first, count)) in all.into_iter().enumerate() {
            let frames = &frames[first as usize..(first + count) as usize];
            self.inner.number(1, index as u64 + 1);
            let place = self.stacks.frame(frames[0]);
            let place = place.module.zip(place.offset);
            if let Some((ProfileModuleId(module), offset)) = place {
                self.inner.number(2, u64::from(module) + 1);
                self.inner.number(3, offset);
            }
            for id in frames {
                let frame = self.stacks.frame(*id);
                let ProfileFrame { function, line, column, .. } = frame;
                if place.is_some() && (self.options.symbols == PprofSymbols::BuildId || function.is_none()) {
                    continue;
                }
                let [name, system_name, file] =
                    self.stacks.frame_texts(*id).map(|text| text.map_or(0, |text| self.texts.number(text)));
                let name =
                    if function.is_some() { name } else { self.texts.id(&self.stacks.frame_name(&frame)) };
                let key = (name, system_name, file);
                let next = functions.len() as u64 + 1;
                let function = *ids.entry(key).or_insert(next);
                if function == next {
                    functions.push(key);
                }
                self.room.clear();
                self.room.number(1, function);
                self.room.number(2, line.unwrap_or_default().into());
                self.room.number(3, column.unwrap_or_default().into());
                self.inner.bytes(4, &self.room.0);
            }
            self.send(4)?;
        }
        for (index, (name, system_name, file)) in functions.into_iter().enumerate() {
            self.inner.number(1, index as u64 + 1);
            self.inner.number(2, name);
            self.inner.number(3, system_name);
            self.inner.number(4, file);
            self.send(5)?;
        }
        Ok(())
    }

    fn facts(&mut self) -> Result<(), ExportError> {
        let facts = self.stacks.facts();
        let nanoseconds =
            |time: Option<Duration>| time.and_then(|time| i64::try_from(time.as_nanos()).ok()).unwrap_or(0);
        self.value_type(11, "space", "bytes")?;
        let is_live = self.stacks.index_of(ProfileValue::LiveBytes).is_some();
        let default = self.texts.id(if is_live { "inuse_space" } else { "alloc_space" });
        let dropped = match self.options.symbols {
            PprofSymbols::Inline => 0,
            PprofSymbols::BuildId => self.texts.id(DROPPED),
        };
        let comment = self.texts.id(&facts.comment);
        self.message.clear();
        self.message.number(7, dropped);
        self.message.signed(9, nanoseconds(facts.time));
        self.message.signed(10, nanoseconds(facts.duration));
        self.message.number(12, facts.sample_bytes.unwrap_or(1));
        self.message.number(13, comment);
        self.message.number(14, default);
        self.out.write_all(&self.message.0)?;
        Ok(())
    }
}
